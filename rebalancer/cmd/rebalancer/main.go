// Command rebalancer moves shares of limits among regions as the traffic moves. See `rebalancer -h`.
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
	if err := command(os.Args[1:]).ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "rebalancer:", err)
		stop()
		os.Exit(1)
	}
}
