package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"time"
)

// medianFront picks the round with the middle rate, whole.
func medianFront(rounds []proxySample) proxySample {
	s := slices.Clone(rounds)
	slices.SortFunc(s, func(a, b proxySample) int {
		switch {
		case a.PerSecond < b.PerSecond:
			return -1
		case a.PerSecond > b.PerSecond:
			return 1
		}
		return 0
	})
	return s[len(s)/2]
}

func (r *proxyReport) find(name string) proxySample {
	for _, x := range r.Results {
		if x.Front == name {
			return x.proxySample
		}
	}
	return proxySample{}
}

func (r *proxyReport) markdown(w io.Writer, o options) error {
	if o.out != "" {
		b, err := json.MarshalIndent(r, "", "  ")
		if err != nil {
			return fmt.Errorf("encode the report: %w", err)
		}
		if err := os.WriteFile(o.out, append(b, '\n'), 0o644); err != nil {
			return fmt.Errorf("write the report: %w", err)
		}
	}
	p := printer{w: w}
	p.line("# The gateway beside a plain proxy\n")
	p.line("%s, %d callers, %d rounds of %v each in turns, the median round counts; callers, front, upstream in one process. %v\n",
		r.When.UTC().Format(time.DateOnly), r.Callers, o.rounds, o.round, r.Machine)
	p.line("| front | requests/s | p50 ms | p99 ms | CPU µs per request, all | allocations per request, all |")
	p.line("| --- | ---: | ---: | ---: | ---: | ---: |")
	for _, x := range r.Results {
		p.line("| %s | %.0f | %.2f | %.2f | %.1f | %.1f |", x.Front, x.PerSecond, x.P50.Seconds()*1e3, x.P99.Seconds()*1e3, x.CPU, x.Allocs)
	}
	plain, open, limited := r.find(plainFront), r.find(openFront), r.find(limitedFront)
	p.line("\n| what | measured | target |")
	p.line("| --- | ---: | --- |")
	p.line("| rate, limited : plain proxy | %.2f | ≥ 0.8 |", limited.PerSecond/plain.PerSecond)
	p.line("| added p50 ms, limited − unlimited route | %.2f | |", (limited.P50-open.P50).Seconds()*1e3)
	p.line("| added p99 ms, limited − unlimited route | %.2f | < 2 |", (limited.P99-open.P99).Seconds()*1e3)
	p.line("| added allocations, limited − plain proxy | %.1f | |", limited.Allocs-plain.Allocs)
	return p.err
}
