package collect

import (
	"testing"
	"time"

	"partidor.dev/partidor/rebalancer/internal/plan"
	"partidor.dev/partidor/shared/limit"
)

// Half-lives are asked for as they are now: after a burst, a change of them changes how fast mean and peak are forgotten.
func TestHalfLivesAct(t *testing.T) {
	after := func(change func(*plan.Parameters)) plan.Load {
		p := plan.DefaultParameters()
		table, _ := testTable(Options{Parameters: func() plan.Parameters { return p }})
		g := newGateway("eu", "eu-1", 0)
		key := limit.Key{Tenant: "a", Route: "r"}
		for i := range 60 {
			now := time.Duration(i+1) * 5 * time.Second
			if i == 20 {
				change(&p)
			}
			if i < 20 {
				g.serve(key, 500, 0)
			}
			table.Usage(now, g.report(now))
			table.Sweep(now)
		}
		return table.Demand(300*time.Second, []string{"eu"})[0].Loads[0]
	}
	usual := after(func(*plan.Parameters) {})
	if slow := after(func(p *plan.Parameters) { p.MeanHalfLife = time.Hour }); !(slow.Mean > 10*usual.Mean) {
		t.Errorf("mean %g with a half-life of an hour, usually %g", slow.Mean, usual.Mean)
	}
	if slow := after(func(p *plan.Parameters) { p.PeakHalfLife = time.Hour }); !(slow.Peak > 4*usual.Peak) {
		t.Errorf("peak %g with a half-life of an hour, usually %g", slow.Peak, usual.Peak)
	}
}
