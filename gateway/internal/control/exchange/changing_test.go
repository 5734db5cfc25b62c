package exchange

import (
	"context"
	"testing"
	"time"

	"partidor.dev/partidor/gateway/internal/snapshot"
	"partidor.dev/partidor/shared/limit"
	"partidor.dev/partidor/shared/wire"
)

// TestNoFirstMoveWhileTheBaseSplitChanges (PROTOCOL R15): 70/30 becomes 40/60 by way of 40/30. A key that moved then would keep
// that for ever, with 300,000 of it nobody's. A key that has moved before moves on.
func TestNoFirstMoveWhileTheBaseSplitChanges(t *testing.T) {
	rule := limit.Rule{Capacity: 200, Refill: 1, PeriodSeconds: 100, Revision: limit.Revision{Epoch: 1, Number: 1}}
	sites := newSites(t, rule, regionShare{"eu", 700_000}, regionShare{"us", 300_000})
	eu, us := sites[0], sites[1]
	link(t, eu, us, 0, 0, time.Millisecond)
	for _, s := range sites {
		s.start(t, s.name+"-1", nil)
	}
	eu.alive(t)
	us.alive(t)
	before, cycle := limit.Key{Tenant: "moved", Route: "before"}, int64(0)
	share := func(k limit.Key, target limit.Share) {
		cycle++
		moves := move("us", 700_000, target)
		moves[0].Tenant, moves[0].Route = k.Tenant, k.Route
		advise(t, eu, context.Background(), wire.Advice{Term: 1, Cycle: cycle, Moves: moves})
	}
	await(t, "a key moves", func() bool { share(before, 600_000); return us.state(t, before).Share == 400_000 })

	publish := func(number, euBase, usBase int64) {
		for _, s := range sites {
			if err := s.rules.Update(func(b *snapshot.Builder) error {
				return b.SetRegions([]snapshot.Region{
					{Name: "eu", Base: limit.Share(euBase), Floor: 35_000}, {Name: "us", Base: limit.Share(usBase), Floor: 15_000},
				}, limit.Revision{Epoch: 1, Number: number})
			}); err != nil {
				t.Fatal(err)
			}
		}
	}
	publish(2, 400_000, 300_000)
	await(t, "the moved key moves on, the other was advised before it each time", func() bool {
		share(key, 200_000)
		share(before, 500_000)
		return us.state(t, before).Share == 500_000
	})
	if e, u := eu.state(t, key), us.state(t, key); e.Moved || u.Moved {
		t.Errorf("%s has moved while the base split changed: eu %+v, us %+v", key, e, u)
	}
	publish(3, 400_000, 600_000)
	await(t, "the other moves once the change is over", func() bool { share(key, 200_000); return us.state(t, key).Share == 800_000 })
	if e := eu.state(t, key); e.Share != 200_000 || e.Base != 400_000 {
		t.Errorf("eu has %d of base %d, want 200000 of 400000", e.Share, e.Base)
	}
}
