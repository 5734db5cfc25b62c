package api

import (
	"strings"
	"testing"
	"time"

	"partidor.dev/partidor/rebalancer/internal/collect"
	"partidor.dev/partidor/rebalancer/internal/plan"
	"partidor.dev/partidor/shared/limit"
	"partidor.dev/partidor/shared/wire"
)

// The last refusal is explained by what the gateway said of it, and so is what would have admitted the request.
func TestExplainTheLastRefusal(t *testing.T) {
	s := newSite(t)
	if code := s.do(t, "PUT", "/v1/rules/a/r", `{"capacity": 20, "refill_per_second": 10}`, nil); code != 200 {
		t.Fatal(code)
	}
	s.collector.demand = []plan.Demand{{Key: limit.Key{Tenant: "a", Route: "r"},
		Loads: []plan.Load{{Known: true, Share: 700_000, Offered: 3}, {Known: true, Share: 300_000, Offered: 5, Refused: 1}}}}
	old, young := limit.Revision{Epoch: 1, Number: 1}, limit.Revision{Epoch: 1, Number: 1000}
	s.collector.regions = []collect.RegionStatus{
		{Name: "eu", Known: true, Instances: 2, Rules: old, Gateways: []collect.Gateway{{Instance: "eu-1", Rules: old}, {Instance: "eu-2", Rules: young, Degraded: true}}},
		{Name: "us", Known: true, Instances: 1, Rules: young, Gateways: []collect.Gateway{{Instance: "us-1", Rules: young, Stale: true}}}}
	for _, c := range []struct {
		name    string
		refusal wire.Refusal
		want    string
	}{
		{"no room", wire.Refusal{Outcome: "refused", Source: "redis", Cost: 2, Tokens: 0.4, WaitMillis: 533},
			"a request of cost 2 at gateway us-1, decided by redis: the bucket held 0.4 of the 2 tokens it takes; waiting 0.533 s would have admitted it"},
		{"above the capacity", wire.Refusal{Outcome: "too_large", Source: "redis", Cost: 50}, "a capacity of at least 50 would admit it"},
		{"above the slice", wire.Refusal{Outcome: "too_large", Source: "redis", Cost: 8}, "slice of 6 tokens; a larger share, or max_cost 8 in the rule, would admit it"},
		{"another limit", wire.Refusal{Outcome: "refused", Source: "denied-cache", Cost: 1, Limit: "@tenant"}, "see partidorctl explain a @tenant"},
		{"no decision", wire.Refusal{Outcome: "unable", Source: "fallback", Cost: 1}, "used up its own part of the slice; a Redis that answers"},
		{"an outcome of a later version", wire.Refusal{Outcome: "tired", Source: "moon", Cost: 1}, "decided by moon"},
	} {
		tokens := 3.5
		s.collector.details = []collect.Detail{{}, {Tokens: tokens, Told: true, Sources: []uint64{1, 9}, Refusal: &c.refusal, RefusedAt: time.Now(), RefusedBy: "us-1",
			Moves: []collect.ShareMove{{At: time.Now(), From: 250_000, To: 300_000}}}}
		var x Explanation
		if code := s.do(t, "GET", "/v1/explain/a/r", "", &x); code != 200 {
			t.Fatal(code)
		}
		all := strings.Join(x.Findings, "\n")
		for _, want := range []string{c.want, "gateway eu-1 of eu still serves by revision 1.1", "gateway eu-2 of eu decides without its Redis",
			"gateway us-1 of us serves by rules that it saved earlier", "us refuses 1 of 5 tokens/s"} {
			if !strings.Contains(all, want) {
				t.Errorf("%s: findings\n%s\nhold no %q", c.name, all, want)
			}
		}
		us := x.Regions[1]
		if us.Tokens == nil || *us.Tokens != tokens || us.Sources["prefetch"] != 9 || len(us.Moves) != 1 || us.Gateways[0].Instance != "us-1" || x.Regions[0].Tokens != nil {
			t.Errorf("%s: %+v", c.name, us)
		}
	}
}
