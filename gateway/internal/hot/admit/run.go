package admit

import (
	"context"
	"time"

	"golang.org/x/sync/errgroup"

	"partidor.dev/partidor/shared/bucket"
	"partidor.dev/partidor/shared/fallback"
	"partidor.dev/partidor/shared/limit"
)

const (
	// sweepEvery is how often debts and unused tokens are looked for.
	sweepEvery = 100 * time.Millisecond
	// settleBatch is how many debts one sweep settles, abreast how many at once: they travel together.
	settleBatch = 4096
	abreast     = 64
	// backgroundDeadline bounds one call of the background part, which nobody waits for.
	backgroundDeadline = 250 * time.Millisecond
)

// Run tries nodes that are away, settles what was admitted without Redis and returns tokens taken ahead and not used, until
// ctx ends; then it returns what is left, within a quarter of a second. There is one Run per Admitter.
func (a *Admitter) Run(ctx context.Context) error {
	tick := time.NewTicker(sweepEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			// The process ends: what it holds goes back, for the other instances to use.
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), backgroundDeadline)
			defer cancel()
			a.square(last, time.Now(), 0)
			return nil
		case now := <-tick.C:
			for _, n := range a.nodes.all() {
				a.try(ctx, now, n)
			}
			a.square(ctx, now, 2*a.memory.fetch.horizon)
		}
	}
}

// square sends what is owed, and what has been held for longer than age (nanoseconds), to the nodes that are there.
func (a *Admitter) square(ctx context.Context, now time.Time, age int64) {
	var calls errgroup.Group
	calls.SetLimit(abreast)
	for _, lim := range a.local.Debts(now, nil, settleBatch) {
		if a.nodes.of(&lim).State() != fallback.Closed {
			a.local.Restore(lim.Key, lim.Owed)
			continue
		}
		calls.Go(func() error { a.adjust(ctx, lim); return nil })
	}
	for _, lim := range a.unused(a.since(now), age) {
		calls.Go(func() error { a.adjust(ctx, lim); return nil })
	}
	_ = calls.Wait()
}

// adjust sends a debt or a return by itself. It is sent once: if no answer comes, nobody knows whether it arrived.
func (a *Admitter) adjust(ctx context.Context, lim bucket.Limit) {
	bounded, cancel := context.WithTimeout(ctx, backgroundDeadline)
	defer cancel()
	_, err := a.store.Take(bounded, []bucket.Limit{lim})
	switch {
	case err == nil && lim.Owed < 0:
		a.metrics.returned(-lim.Owed)
	case err != nil && lim.Owed > 0 && bucket.Untouched(err):
		a.local.Restore(lim.Key, lim.Owed)
	case err != nil && lim.Owed > 0:
		a.metrics.unsettled(lim.Owed)
	}
}

// unused takes back the tokens of batches older than age: a key in steady use spends a batch within one horizon. Those of a
// node that is away stay: they may still be spent.
func (a *Admitter) unused(at, age int64) (back []bucket.Limit) {
	snap, life := a.rules.Load(), a.memory.life.Load()
	a.memory.keys.Range(func(key limit.Key, h *hot) bool {
		b := h.batch.Load()
		if b == nil || at-b.at < age || b.left.Load() == 0 {
			return true
		}
		m := snap.Lookup(key.Tenant, key.Route)
		if m.Rule == nil || b.life != life {
			h.withdraw()
			return true
		}
		lim := bucket.Limit{Key: key, Rule: m.Rule, Revision: m.Revision, Base: m.Base, Late: snap.Late(&m, time.Now()), Floor: m.Floor, Moved: m.Moved}
		if a.nodes.of(&lim).State() != fallback.Closed {
			return true
		}
		if lim.Owed = -h.withdraw(); lim.Owed < 0 {
			back = append(back, lim)
		}
		return true
	})
	return back
}
