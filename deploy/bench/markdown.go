package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"
)

// markdown writes the report for people.
func (r *report) markdown(w io.Writer) error {
	p := printer{w: w}
	p.line("# Speed, measured\n")
	p.line("%s, %d rounds of %v each that take turns, the median round counts. %s. %s.\n", r.When.UTC().Format("2006-01-02 15:04 UTC"), r.Rounds,
		r.Round, words(r.Machine), words(r.Versions))
	if len(r.LeftOut) > 0 {
		p.line("Left out, mostly because the machine was too slow for the time given: %s.\n", strings.Join(r.LeftOut, ", "))
	}
	p.table(len(r.Targets), "## Targets\n", "| what | measured | target | reached |", "| --- | ---: | --- | --- |")
	for _, t := range r.Targets {
		reached := "yes"
		if !t.Reached {
			reached = "**no**"
		}
		p.line("| %s | %s | %s | %s |", t.What, number(t.Value), t.Want, reached)
	}
	p.table(len(r.Results), "\n## Decisions on one Redis\n",
		"| subject | keys | callers | decisions/s | p50 ms | p99 ms | CPU µs client + Redis | Redis calls per decision | refused |",
		"| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
	for _, x := range r.Results {
		p.line("| %s | %s | %d | %.0f | %.2f | %.2f | %.1f + %.1f | %.3f | %.1f %% |", x.Subject, strings.TrimSpace(fmt.Sprint(x.Keys, " ", x.Shape)),
			x.Callers, x.PerSecond, ms(x.P50), ms(x.P99), x.ClientCPU, x.RedisCPU, x.RedisCalls, 100*x.Refused)
	}
	r.fronts(&p, r.Proxies, "\n## The gateway beside a plain proxy\n\nCallers, front and upstream share one process; only differences between rows mean something.\n")
	r.fronts(&p, r.Fleet, "\n## Several gateways on one Redis\n\nIn one process, so that their number does not add processors.\n")
	p.table(len(r.Paced), "\n## Latency under a steady rate\n\nOpen loop, waits from when a request was due; the rate is a part of what the limited gateway carries at most.\n",
		"| front | load | requests/s | p50 ms | p99 ms | p99.9 ms | PING p99 ms |", "| --- | ---: | ---: | ---: | ---: | ---: | ---: |")
	for _, x := range r.Paced {
		p.line("| %s | %.0f %% | %.0f | %.2f | %.2f | %.2f | %.2f |", x.Front, x.Load*100, x.PerSecond, ms(x.P50), ms(x.P99), ms(x.P999), ms(x.Ping))
	}
	r.capacity(&p)
	p.table(len(r.Parts), "\n## Parts\n\nThe packages' own benchmarks, as `go test -bench` prints them.\n", "| benchmark | values |", "| --- | --- |")
	for _, x := range r.Parts {
		var values []string
		for _, unit := range slices.Sorted(maps.Keys(x.Values)) {
			values = append(values, number(x.Values[unit])+" "+unit)
		}
		p.line("| %s %s | %s |", x.Package, x.Name, strings.Join(values, ", "))
	}
	p.table(len(r.Took), "\n## Time of the sections\n", "| section | s |", "| --- | ---: |")
	for _, x := range r.Took {
		p.line("| %s | %.0f |", x.Section, x.Seconds)
	}
	return p.err
}

func (r *report) fronts(p *printer, list []proxyResult, title string) {
	p.table(len(list), title, "| front | callers | requests/s | p50 ms | p99 ms | CPU µs, all | allocations, all | Redis CPU µs | Redis calls per request |",
		"| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
	for _, x := range list {
		p.line("| %s | %d | %.0f | %.2f | %.2f | %.1f | %.1f | %.1f | %.3f |", x.Front, x.Callers, x.PerSecond, ms(x.P50), ms(x.P99), x.CPU, x.Allocs,
			x.RedisCPU, x.RedisCalls)
	}
}

func ms(d time.Duration) float64 { return d.Seconds() * 1e3 }

// number is v in at most three significant digits behind the point, whole from a hundred on.
func number(v float64) string {
	if v >= 100 || v <= -100 || v == float64(int64(v)) {
		return fmt.Sprintf("%.0f", v)
	}
	return fmt.Sprintf("%.3g", v)
}

func words(m map[string]string) string {
	var all []string
	for _, k := range slices.Sorted(maps.Keys(m)) {
		all = append(all, k+" "+m[k])
	}
	return strings.Join(all, ", ")
}

// printer keeps the first error of many lines.
type printer struct {
	w   io.Writer
	err error
}

func (p *printer) line(format string, args ...any) {
	if p.err == nil {
		_, p.err = fmt.Fprintf(p.w, format+"\n", args...)
	}
}

// table begins a table of n rows; without rows there is none.
func (p *printer) table(n int, lines ...string) {
	if n == 0 {
		return
	}
	for _, l := range lines {
		p.line("%s", l)
	}
}
