// Command partidorctl is the operators' command line: rules, plans, keys, splits, regions and parameters of a running
// rebalancer. See `partidorctl -h` and exit.go for exit codes.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := newRoot(os.Stdin, os.Stdout, os.Stderr).ExecuteContext(ctx)
	if err != nil {
		fmt.Fprintln(os.Stderr, "partidorctl:", err)
	}
	stop()
	os.Exit(exitCode(err))
}
