package cycle

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"partidor.dev/partidor/rebalancer/internal/ledger"
	"partidor.dev/partidor/rebalancer/internal/plan"
	"partidor.dev/partidor/shared/limit"
)

// TestFirstMove: a key counts as moved once a region reports a share that cannot be its base share. A tiny limit sits whole in
// its home before it has ever moved: that is its base, and no move.
func TestFirstMove(t *testing.T) {
	large := &limit.Rule{Capacity: 200, Refill: 100, PeriodSeconds: 1}
	tiny := &limit.Rule{Capacity: 1, Refill: 1, PeriodSeconds: 1}
	m := &ledger.Mirror{Regions: []ledger.Region{
		{Name: "ap", Base: 200_000, Published: 200_000}, {Name: "eu", Base: 450_000, Published: 450_000}, {Name: "us", Base: 350_000, Published: 300_000},
	}}
	load := func(share limit.Share) plan.Load { return plan.Load{Known: true, Share: share} }
	published := []limit.Share{200_000, 450_000, 300_000}
	for _, c := range []struct {
		name  string
		rule  *limit.Rule
		loads []plan.Load
		want  []limit.Share
	}{
		{"nobody has said anything", large, []plan.Load{load(0), load(0), load(0)}, nil},
		{"as published", large, []plan.Load{load(200_000), load(450_000), load(300_000)}, nil},
		{"as configured, by a gateway that is ahead", large, []plan.Load{load(200_000), load(450_000), load(350_000)}, nil},
		{"moved", large, []plan.Load{load(0), load(400_000), load(300_000)}, published},
		{"a silent region's word counts for nothing", large, []plan.Load{load(0), {Share: 400_000}, load(300_000)}, nil},
		{"tiny, at home", tiny, []plan.Load{load(0), load(limit.Whole), load(0)}, nil},
		{"tiny, at another's", tiny, []plan.Load{load(limit.Whole), load(0), load(0)}, []limit.Share{0, limit.Whole, 0}},
	} {
		if diff := cmp.Diff(c.want, firstMove(m, &plan.Demand{Rule: c.rule, Loads: c.loads})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}
