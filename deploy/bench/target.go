package main

import (
	"fmt"
	"slices"
)

// target is a number of DESIGN's table, as this run measured it.
type target struct {
	What    string  `json:"what"`
	Value   float64 `json:"value"`
	Want    string  `json:"want"`
	Reached bool    `json:"reached"`
}

func (r *report) least(what string, value, want float64) {
	r.Targets = append(r.Targets, target{what, value, fmt.Sprintf("≥ %s", number(want)), value >= want})
}

func (r *report) most(what string, value, want float64) {
	r.Targets = append(r.Targets, target{what, value, fmt.Sprintf("≤ %s", number(want)), value <= want})
}

// judge fills in the targets whose sections ran.
func (r *report) judge() {
	r.judgeLimiter()
	r.judgeProxies()
	r.judgePace()
	r.judgeParts()
}

// judgeLimiter compares with the peer in the same run. Each ratio is the median of the rounds' ratios: a round's neighbours in
// time saw the same machine.
func (r *report) judgeLimiter() {
	for _, callers := range []int{32, 128} {
		a, b := r.find(ours, load{Keys: 10_000, Callers: callers}), r.find(peer, load{Keys: 10_000, Callers: callers})
		if a == nil || b == nil {
			continue
		}
		of := func(what string) string { return fmt.Sprintf("%s, %s : %s, %d callers", what, ours, peer, callers) }
		rate := ratio(a, b, func(s sample) float64 { return s.PerSecond })
		cpu := ratio(a, b, func(s sample) float64 { return s.ClientCPU + s.RedisCPU })
		if callers == 32 {
			r.least(of("rate"), rate, 1.5)
			continue
		}
		r.least(of("rate"), rate, 3)
		r.most(of("p99"), ratio(a, b, func(s sample) float64 { return float64(s.P99) }), 0.5)
		r.most(of("CPU per decision"), cpu, 1.0/3)
	}
	a, ping := r.find(ours, load{Keys: 10_000, Callers: 512}), r.find("ping", load{Keys: 10_000, Callers: 128})
	if a != nil && ping != nil {
		r.least("rate, "+ours+" at 512 callers : ping at 128", ratio(a, ping, func(s sample) float64 { return s.PerSecond }), 1.5)
	}
}

func ratio(a, b *result, of func(sample) float64) float64 {
	var all []float64
	for i := range min(len(a.Rounds), len(b.Rounds)) {
		all = append(all, of(a.Rounds[i])/of(b.Rounds[i]))
	}
	slices.Sort(all)
	return all[len(all)/2]
}

func (r *report) judgeProxies() {
	plain, limited, ahead := findFront(r.Proxies, plainFront), findFront(r.Proxies, limitedFront), findFront(r.Proxies, aheadFront)
	if plain == nil || limited == nil || ahead == nil {
		return
	}
	r.least("rate, gateway with limiter : plain ReverseProxy", limited.PerSecond/plain.PerSecond, 0.8)
	r.most("Redis calls per request, tokens taken ahead", ahead.RedisCalls, 0.02)
}

func (r *report) judgePace() {
	for _, part := range []float64{0.25, 0.5, 0.75} {
		open, limited := r.paced(openFront, part), r.paced(limitedFront, part)
		if open == nil || limited == nil {
			continue
		}
		added := (limited.P99 - open.P99).Seconds() * 1e3
		r.most(fmt.Sprintf("added latency, p99 ms, at %.0f %% of saturation", part*100), added, 2)
	}
}

func (r *report) judgeParts() {
	for _, t := range []struct {
		name, unit, what string
		scale, want      float64
		least            bool
	}{
		{"Prefetched/limits=1", "decisions/cpu-s", "decisions/s of one core, tokens taken ahead", 1, 2_000_000, true},
		{"Prefetched/limits=1", "allocs/op", "allocations per decision, tokens taken ahead", 1, 0, false},
		{"Lookup/cached/own", "median-ns/look-up", "look-up ns, 16 tenants", 1, 150, false},
		{"Lookup/hot/own", "median-ns/look-up", "look-up ns, 1,000 tenants", 1, 150, false},
		{"Lookup/cold/own", "median-ns/look-up", "look-up ns, 65,536 tenants at random", 1, 150, false},
		{"Build", "MB", "snapshot of 500,000 rules, MB", 1, 200, false},
		{"Load/whole", "ns/op", "load of 500,000 rules from PostgreSQL, s", 1e-9, 5, false},
		{"Load/increment", "ns/op", "increment of 1 %, ms", 1e-6, 100, false},
		{"Ingest", "keys/cpu-s", "usage ingest, key updates/s of one core", 1, 200_000, true},
		{"Plan100kKeys", "ns/op", "plan of 100,000 keys × 3 regions, s", 1e-9, 1, false},
		{"Plan100kKeys", "MB-from-OS", "its memory, MB", 1, 500, false},
	} {
		v, ok := r.part(t.name, t.unit)
		switch {
		case !ok:
		case t.least:
			r.least(t.what, v*t.scale, t.want)
		default:
			r.most(t.what, v*t.scale, t.want)
		}
	}
}
