// Package replay asks what other parameters would have done: it runs the plan that ships over recorded demand, minute by
// minute, with shares that move as soon as a plan wants them. It is a comparison of parameters, not a simulation of the
// system: bursts, links and the fast loop are left out (package sim has them).
package replay

import (
	"time"

	"partidor.dev/partidor/rebalancer/internal/ledger"
	"partidor.dev/partidor/rebalancer/internal/plan"
	"partidor.dev/partidor/shared/limit"
)

// Outcome is what would have become of the recorded demand, in tokens, and how often shares would have moved.
type Outcome struct {
	Offered float64 `json:"offered"`
	Refused float64 `json:"refused"`
	// Unavoidable is what no split could have admitted.
	Unavoidable float64 `json:"unavoidable"`
	Moves       int     `json:"moves"`
}

// key is one key on its way through the record.
type key struct {
	demand    plan.Demand
	estimates []plan.Estimate
	offered   []float64
}

// Run replays points, which are in the order of time and one minute apart, over the regions. Keys without a rule, and the
// sum of the rest, are left out.
func Run(regions []plan.Region, rule func(limit.Key) *limit.Rule, points []ledger.DemandPoint, p plan.Parameters) Outcome {
	r := &run{regions: regions, rule: rule, parameters: p, keys: map[limit.Key]*key{}, index: map[string]int{}}
	for i, region := range regions {
		r.index[region.Name] = i
	}
	for i := range points {
		if !points[i].At.Equal(r.at) {
			r.minute(points[i].At)
		}
		r.take(&points[i])
	}
	r.minute(time.Time{})
	return r.outcome
}

type run struct {
	regions    []plan.Region
	rule       func(limit.Key) *limit.Rule
	parameters plan.Parameters
	index      map[string]int
	keys       map[limit.Key]*key
	order      []*key
	at         time.Time
	planned    time.Time
	outcome    Outcome
}

func (r *run) take(d *ledger.DemandPoint) {
	region, ok := r.index[d.Region]
	if !ok || d.Tenant == limit.Wildcard {
		return
	}
	name := limit.Key{Tenant: d.Tenant, Route: d.Route}
	k, ok := r.keys[name]
	if !ok {
		k = &key{estimates: make([]plan.Estimate, len(r.regions)), offered: make([]float64, len(r.regions)),
			demand: plan.Demand{Key: name, Rule: r.rule(name), Loads: make([]plan.Load, len(r.regions))}}
		for i := range r.regions {
			k.demand.Loads[i] = plan.Load{Known: true, Share: r.regions[i].Base}
		}
		r.keys[name] = k
		if k.demand.Rule != nil {
			r.order = append(r.order, k)
		}
	}
	k.offered[region] = float64(d.Offered)
}

// minute settles the minute that has gone by and plans where a cycle is due.
func (r *run) minute(next time.Time) {
	if !r.at.IsZero() {
		for _, k := range r.order {
			r.settle(k)
		}
		if r.at.Sub(r.planned) >= r.parameters.Cycle {
			r.plan()
		}
	}
	r.at = next
}

func (r *run) settle(k *key) {
	const seconds = 60
	offered, admitted := 0.0, 0.0
	limited := k.demand.Rule.SliceOf(limit.Whole).Rate
	for i := range r.regions {
		load := &k.demand.Loads[i]
		k.estimates[i].Observe(k.offered[i], time.Minute, r.parameters)
		load.Mean, load.Peak, load.Offered = k.estimates[i].Mean, k.estimates[i].Peak, k.offered[i]
		offered += k.offered[i]
		admitted += min(k.offered[i], k.demand.Rule.SliceOf(load.Share).Rate)
		k.offered[i] = 0
	}
	r.outcome.Offered += offered * seconds
	r.outcome.Refused += (offered - admitted) * seconds
	r.outcome.Unavoidable += max(0, offered-limited) * seconds
}

func (r *run) plan() {
	r.planned = r.at
	in := plan.Input{Now: r.at, Parameters: r.parameters, Homes: true, Regions: r.regions, Keys: make([]plan.Demand, len(r.order))}
	for i, k := range r.order {
		in.Keys[i] = k.demand
	}
	res := plan.Plan(in)
	r.outcome.Moves += len(res.Moves)
	for i := range res.Targets {
		t := &res.Targets[i]
		k := r.keys[t.Key]
		k.demand.Last = t.Shares
		for j, share := range t.Shares {
			k.demand.Loads[j].Share = share
		}
	}
}
