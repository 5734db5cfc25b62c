package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"strings"
	"syscall"
	"time"
)

func main() {
	round := flag.Duration("round", 1500*time.Millisecond, "length of one round")
	rounds := flag.Int("rounds", 3, "rounds per subject and load")
	out := flag.String("out", "", "also write the report to this file, as JSON")
	proxies := flag.Int("proxies", 0, "measure the gateway beside a plain proxy instead, with so many `callers`")
	only := flag.String("only", "", "comma-separated subjects; all if empty")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	o, err := options{*round, *rounds, *out, *only, loads}, error(nil)
	if *proxies > 0 {
		err = runProxies(ctx, os.Stdout, o, *proxies)
	} else {
		err = run(ctx, os.Stdout, o)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

var loads = []load{{10_000, 32}, {10_000, 128}, {10_000, 512}, {1, 32}, {1, 128}}

type options struct {
	round  time.Duration
	rounds int
	out    string
	only   string
	loads  []load
}

func run(ctx context.Context, w io.Writer, o options) error {
	s, err := startServer(ctx)
	if err != nil {
		return err
	}
	defer s.stop()
	r := report{When: time.Now(), Machine: machine(), Versions: versions(), Round: o.round, Rounds: o.rounds}
	for _, l := range o.loads {
		samples := map[string][]sample{}
		for i := range o.rounds {
			for _, sub := range subjects() {
				if o.only != "" && !strings.Contains(","+o.only+",", ","+sub.name+",") {
					continue
				}
				fmt.Fprintf(os.Stderr, "\r%-70s", fmt.Sprintf("%d keys, %d callers, round %d: %s", l.Keys, l.Callers, i+1, sub.name))
				x, err := measure(ctx, s, sub, l, o.round)
				if err != nil {
					return err
				}
				samples[sub.name] = append(samples[sub.name], x)
			}
		}
		for _, sub := range subjects() {
			if xs := samples[sub.name]; len(xs) > 0 {
				r.Results = append(r.Results, result{sub.name, l, median(xs)})
			}
		}
	}
	fmt.Fprintf(os.Stderr, "\r%-70s\r", "")
	r.compare()
	if o.out != "" {
		b, err := json.MarshalIndent(r, "", "  ")
		if err != nil {
			return fmt.Errorf("encode the report: %w", err)
		}
		if err := os.WriteFile(o.out, append(b, '\n'), 0o644); err != nil {
			return fmt.Errorf("write the report: %w", err)
		}
	}
	return r.markdown(w)
}

func machine() map[string]string {
	return map[string]string{"os": runtime.GOOS, "arch": runtime.GOARCH, "cpus": fmt.Sprint(runtime.NumCPU()), "go": runtime.Version()}
}

// versions of the subjects, from the build.
func versions() map[string]string {
	v := map[string]string{}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, d := range info.Deps {
			for _, name := range []string{"redis/go-redis", "redis_rate", "throttled", "x/time"} {
				if strings.Contains(d.Path, name) {
					v[d.Path] = d.Version
				}
			}
		}
	}
	return v
}
