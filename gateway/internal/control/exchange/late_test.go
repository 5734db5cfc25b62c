package exchange

import (
	"context"
	"testing"
	"time"

	"partidor.dev/partidor/gateway/internal/snapshot"
	"partidor.dev/partidor/shared/limit"
	"partidor.dev/partidor/shared/rights"
	"partidor.dev/partidor/shared/wire"
)

// TestRulesComeLate: an instance that drives before it has read who the other regions are does not take its region for the only
// one. Else it would live on after a loss of data without asking anybody, and no peer would ever learn its number.
func TestRulesComeLate(t *testing.T) {
	rule := limit.Rule{Capacity: 200, Refill: 1, PeriodSeconds: 100, Revision: limit.Revision{Epoch: 1, Number: 1}}
	sites := newSites(t, rule, regionShare{"eu", 700_000}, regionShare{"us", 300_000})
	eu, us := sites[0], sites[1]
	link(t, eu, us, 0, 0, time.Millisecond)
	read := []*snapshot.Holder{eu.rules, us.rules}
	for _, s := range sites {
		s.rules = snapshot.NewHolder(s.name)
		s.start(t, s.name+"-1", nil)
	}
	began := time.Now()
	await(t, "several ticks pass", func() bool { return time.Since(began) > 5*tick })
	for i, s := range sites {
		if r, err := s.store.Record(context.Background()); err != nil || r.Phase == rights.Active && r.Self > 0 {
			t.Errorf("%s lives as %d without having asked anybody, %v", s.name, r.Self, err)
		}
		regions, at := read[i].Load().Regions(), read[i].Load().RegionsRevision()
		if err := s.rules.Update(func(b *snapshot.Builder) error {
			b.SetDefault(&rule)
			return b.SetRegions(regions, at)
		}); err != nil {
			t.Fatal(err)
		}
	}
	eu.alive(t)
	us.alive(t)
	cycle := int64(0)
	await(t, "share arrives", func() bool {
		cycle++
		advise(t, eu, context.Background(), wire.Advice{Term: 1, Cycle: cycle, Moves: move("us", 700_000, 500_000)})
		return us.state(t, key).Share == 500_000
	})
}
