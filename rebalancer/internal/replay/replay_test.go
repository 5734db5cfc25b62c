package replay

import (
	"testing"
	"time"

	"partidor.dev/partidor/rebalancer/internal/ledger"
	"partidor.dev/partidor/rebalancer/internal/plan"
	"partidor.dev/partidor/shared/limit"
)

var regions = []plan.Region{{Name: "eu", Base: 700_000}, {Name: "us", Base: 300_000}}

func rule(limit.Key) *limit.Rule { return &limit.Rule{Capacity: 200, Refill: 100, PeriodSeconds: 1} }

// moved is an hour of traffic that is in eu for the first half and in us for the second.
func moved() (points []ledger.DemandPoint) {
	begin := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	for i := range 60 {
		eu, us := float32(65), float32(25)
		if i >= 30 {
			eu, us = 10, 85
		}
		at := begin.Add(time.Duration(i) * time.Minute)
		points = append(points, ledger.DemandPoint{At: at, Tenant: "a", Route: "r", Region: "eu", Offered: eu},
			ledger.DemandPoint{At: at, Tenant: "a", Route: "r", Region: "us", Offered: us},
			ledger.DemandPoint{At: at, Tenant: "*", Route: "*", Region: "eu", Offered: 1000})
	}
	return points
}

func TestReplayComparesParameters(t *testing.T) {
	p := plan.DefaultParameters()
	follows := Run(regions, rule, moved(), p)
	if follows.Offered != 60*(30*90+30*95) || follows.Unavoidable != 0 {
		t.Errorf("outcome %+v", follows)
	}
	p.Cycle = time.Hour // never plans within the hour but once
	stays := Run(regions, rule, moved(), p)
	if follows.Refused*2 > stays.Refused || follows.Moves == 0 {
		t.Errorf("with two-minute cycles %+v, with one an hour %+v: want far fewer refusals", follows, stays)
	}
	if again := Run(regions, rule, moved(), plan.DefaultParameters()); again != follows {
		t.Errorf("two replays differ: %+v and %+v", again, follows)
	}
}
