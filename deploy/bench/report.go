package main

import (
	"fmt"
	"io"
	"time"
)

// result is the median of one subject under one load.
type result struct {
	Subject string `json:"subject"`
	load
	sample
}

// report is the whole run.
type report struct {
	When     time.Time         `json:"when"`
	Machine  map[string]string `json:"machine"`
	Round    time.Duration     `json:"round_ns"`
	Rounds   int               `json:"rounds"`
	Results  []result          `json:"results"`
	Ratios   []ratio           `json:"ratios"`
	Versions map[string]string `json:"versions"`
}

// ratio is one target of DESIGN's table, as measured in this run.
type ratio struct {
	What     string  `json:"what"`
	Value    float64 `json:"value"`
	Target   string  `json:"target"`
	Reached  bool    `json:"reached"`
	Callers  int     `json:"callers"`
	Keys     int     `json:"keys"`
	Compared string  `json:"compared"`
}

func (r *report) find(subject string, l load) (result, bool) {
	for _, x := range r.Results {
		if x.Subject == subject && x.load == l {
			return x, true
		}
	}
	return result{}, false
}

// compare fills in the ratios that the design asks for: Partidor's batched store against redis_rate.
func (r *report) compare() {
	const ours, peer = "partidor batched", "redis_rate"
	add := func(l load, what string, value float64, target string, reached bool) {
		r.Ratios = append(r.Ratios, ratio{what, value, target, reached, l.Callers, l.Keys, ours + " : " + peer})
	}
	for _, l := range []load{{10_000, 32}, {10_000, 128}} {
		a, ok := r.find(ours, l)
		b, there := r.find(peer, l)
		if !ok || !there {
			continue
		}
		rate := a.PerSecond / b.PerSecond
		if l.Callers == 32 {
			add(l, "rate", rate, "≥ 1.5", rate >= 1.5)
			continue
		}
		p99 := float64(a.P99) / float64(b.P99)
		cpu := (a.ClientCPU + a.RedisCPU) / (b.ClientCPU + b.RedisCPU)
		add(l, "rate", rate, "≥ 3", rate >= 3)
		add(l, "p99", p99, "≤ 0.5", p99 <= 0.5)
		add(l, "CPU per decision", cpu, "≤ 0.333", cpu <= 1.0/3)
	}
	l := load{10_000, 512}
	if a, ok := r.find(ours, l); ok {
		if ping, there := r.find("ping", load{10_000, 128}); there {
			rate := a.PerSecond / ping.PerSecond
			r.Ratios = append(r.Ratios, ratio{"saturated rate", rate, "≥ 1.5", rate >= 1.5, 512, l.Keys, ours + " : ping at 128"})
		}
	}
}

func (r *report) markdown(w io.Writer) error {
	p := printer{w: w}
	p.line("# Decisions on one Redis\n")
	p.line("%s, %d rounds of %v each, the median round counts. %v\n", r.When.UTC().Format(time.DateOnly), r.Rounds, r.Round, r.Machine)
	p.line("| subject | keys | callers | decisions/s | p50 ms | p99 ms | CPU µs client + Redis | Redis calls per decision |")
	p.line("| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
	for _, x := range r.Results {
		p.line("| %s | %d | %d | %.0f | %.2f | %.2f | %.1f + %.1f | %.3f |", x.Subject, x.Keys, x.Callers, x.PerSecond,
			x.P50.Seconds()*1e3, x.P99.Seconds()*1e3, x.ClientCPU, x.RedisCPU, x.RedisCalls)
	}
	p.line("\n| ratio | callers | measured | target | reached |")
	p.line("| --- | ---: | ---: | --- | --- |")
	for _, x := range r.Ratios {
		p.line("| %s, %s | %d | %.2f | %s | %v |", x.Compared, x.What, x.Callers, x.Value, x.Target, x.Reached)
	}
	return p.err
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
