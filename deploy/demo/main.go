// Command demo shows Partidor at work in one terminal, with nothing installed but Go: two regions, each with two gateways
// and a Redis-compatible server, a rebalancer and NATS in one process. Tenants send real HTTP requests; the traffic of
// most swings from 70 % in eu and 30 % in us to 20/80 and back, once a minute, and the split of their limits follows.
//
// Every admission is checked against the limit over the whole world. With -for the demo ends by itself, and fails if a
// limit was ever exceeded. With -soak it is an endurance test: a fault every so often, and nothing may grow.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"
)

func main() { os.Exit(run()) }

func run() int {
	var o options
	flag.DurationVar(&o.duration, "for", 0, "end after this `time`, with exit status 1 if a limit was exceeded (default: run until stopped)")
	flag.BoolVar(&o.json, "json", false, "print only a summary, as JSON, at the end")
	flag.DurationVar(&o.cycle, "cycle", 3*time.Second, "`time` between two plans of the rebalancer")
	flag.DurationVar(&o.swing, "swing", time.Minute, "`time` in which the traffic swings there and back")
	flag.Float64Var(&o.scale, "scale", 1, "`factor` for all traffic and limits")
	flag.Uint64Var(&o.seed, "seed", 1, "`number` that repeats the arrivals")
	flag.StringVar(&o.console, "console", "127.0.0.1:9180", "`address` of the rebalancer's console")
	flag.StringVar(&o.logs, "logs", "", "`file` that takes the services' logs (default: nowhere)")
	flag.DurationVar(&o.soak, "soak", 0, "break something every so much `time` and fail if anything grows")
	flag.StringVar(&o.plot, "plot", "", "`file` that takes a soak's picture (SVG)")
	flag.Parse()
	if flag.NArg() > 0 || o.cycle <= 0 || o.swing <= 0 || !(o.scale > 0) || o.soak < 0 || (o.soak > 0 && o.duration <= 0) {
		flag.Usage()
		return 2
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	summary, failed := demonstrate(ctx, o, os.Stdout)
	if failed != nil {
		fmt.Fprintln(os.Stderr, "demo:", failed)
	}
	if summary == nil { // it never began
		return 1
	}
	if err := summary.print(os.Stdout, o.json); err != nil || failed != nil || summary.Exceeded {
		return 1
	}
	return 0
}
