// Command gateway is the reverse proxy of one region: it names the tenant and the route of a request, takes a token from
// that key's bucket and forwards, or answers 429.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"partidor.dev/partidor/gateway/app"
	"partidor.dev/partidor/shared/health"
)

// version is set by the linker.
var version = ""

func main() { os.Exit(run()) }

func run() int {
	file := flag.String("config", "", "configuration `file` (YAML)")
	check := flag.Bool("check-config", false, "judge the configuration and end")
	show := flag.Bool("version", false, "print the version and end")
	healthy := flag.String("healthy", "", "ask the gateway whose health check has this `URL` whether it lives, and end")
	flag.Parse()
	if *show {
		_ = json.NewEncoder(os.Stdout).Encode(app.BuildOf(version))
		return 0
	}
	if *healthy != "" {
		if err := health.Ask(context.Background(), *healthy); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		return 0
	}
	if *file == "" || flag.NArg() > 0 {
		fmt.Fprintln(os.Stderr, "usage: gateway -config FILE [-check-config]")
		return 2
	}
	hangup := make(chan os.Signal, 1)
	signal.Notify(hangup, syscall.SIGHUP)
	o := app.Options{ConfigFile: *file, Version: version, Hangup: hangup}
	if *check {
		warnings, err := app.Check(context.Background(), o)
		for _, w := range warnings {
			fmt.Fprintln(os.Stderr, "warning: "+w)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		fmt.Println(*file + ": valid")
		return 0
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	if err := app.Run(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}
