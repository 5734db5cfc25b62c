package admit

import (
	"context"
	"time"

	"partidor.dev/partidor/shared/bucket"
	"partidor.dev/partidor/shared/fallback"
	"partidor.dev/partidor/shared/limit"
)

const (
	// sweepEvery is how often debts and unused tokens are looked for.
	sweepEvery = 100 * time.Millisecond
	// settleBatch is how many debts one sweep settles.
	settleBatch = 512
	// backgroundDeadline bounds one call of the background part, which nobody waits for.
	backgroundDeadline = 250 * time.Millisecond
)

// Run settles what was admitted without Redis and returns tokens taken ahead and not used, until ctx ends; then it returns
// what is left. There is one Run per Admitter.
func (a *Admitter) Run(ctx context.Context) error {
	tick := time.NewTicker(sweepEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			// The process ends: what it holds goes back, for the other instances to use.
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), backgroundDeadline)
			defer cancel()
			a.sweep(last, time.Now(), 0)
			return nil
		case now := <-tick.C:
			a.sweep(ctx, now, 2*a.memory.fetch.horizon)
		}
	}
}

// sweep does one round of the background work, if Redis is there. Tokens taken ahead go back if they are older than age
// (nanoseconds).
func (a *Admitter) sweep(ctx context.Context, now time.Time, age int64) {
	if a.breaker.State() != fallback.Closed {
		return
	}
	for _, lim := range a.local.Debts(now, nil, settleBatch) {
		a.adjust(ctx, lim)
	}
	for _, lim := range a.unused(a.since(now), age) {
		a.adjust(ctx, lim)
	}
}

// adjust sends a debt or a return by itself. It is sent once: if no answer comes, nobody knows whether it arrived.
func (a *Admitter) adjust(ctx context.Context, lim bucket.Limit) {
	bounded, cancel := context.WithTimeout(ctx, backgroundDeadline)
	defer cancel()
	_, err := a.store.Take(bounded, []bucket.Limit{lim})
	switch {
	case err != nil && lim.Owed > 0:
		a.metrics.unsettled(lim.Owed)
	case err == nil && lim.Owed < 0:
		a.metrics.returned(-lim.Owed)
	}
}

// unused takes back the tokens of batches older than age: a key in steady use spends a batch within one horizon.
func (a *Admitter) unused(at, age int64) (back []bucket.Limit) {
	snap := a.rules.Load()
	a.memory.keys.Range(func(key limit.Key, h *hot) bool {
		b := h.batch.Load()
		if b == nil || at-b.at < age {
			return true
		}
		if n := b.left.Swap(0); n > 0 && b.life == a.memory.life.Load() {
			m := snap.Lookup(key.Tenant, key.Route)
			if m.Rule != nil {
				back = append(back, bucket.Limit{
					Key: key, Rule: m.Rule, Revision: m.Revision, Base: m.Base, Floor: snap.Floor(), Moved: m.Moved, Owed: -n,
				})
			}
		}
		return true
	})
	return back
}

// changed says loudly, once per change, whether Redis is asked.
func (a *Admitter) changed(_ time.Time, from, to fallback.State) {
	switch {
	case to == fallback.Open && from == fallback.Closed:
		a.opts.Logger.Warn("redis is away: this instance decides by itself", "instances", a.opts.Instances())
	case to == fallback.Closed:
		a.opts.Logger.Info("redis is back: decisions are shared again")
	}
}
