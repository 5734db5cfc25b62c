//go:build chaos

package e2e

import (
	"context"
	"flag"
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"partidor.dev/partidor/shared/limit"
	"partidor.dev/partidor/shared/testenv"
)

var (
	chaosSeed = flag.Uint64("chaos-seed", 1, "seed of TestChaos's schedule and traffic")
	chaosFor  = flag.Duration("chaos-for", 0, "how long TestChaos goes on; by default until each fault has happened once")
)

// TestChaos: three regions of real processes, with a Redis that writes to disk, one that forgets, and a cluster, under traffic,
// while links, processes, Redis, NATS and PostgreSQL fail by a schedule that the seed decides. Every interval of every limit
// must keep its bound, whatever fails, and afterwards no share may be missing or doubled.
func TestChaos(t *testing.T) {
	flows := []flow{
		{"even", route, 100, 50, func(string, time.Duration) float64 { return 25 }},
		{"moving", route, 200, 100, func(region string, at time.Duration) float64 {
			if [...]string{"eu", "ap", "us"}[int(at/(5*time.Second))%3] == region {
				return 90
			}
			return 0
		}},
		{"light", route, 100, 50, func(string, time.Duration) float64 { return 8 }},
		{"minute", route, 5, 5.0 / 60, func(string, time.Duration) float64 { return 0.3 }},
	}
	w := newWorld(t, []site{
		{name: "eu", base: 500_000, gateways: 2, durable: true}, {name: "us", base: 300_000, gateways: 1}, {name: "ap", base: 200_000, gateways: 1, cluster: true},
	}, func(w *world) {
		w.exec(t, `INSERT INTO rate_limit_rule (tenant_id, route_id, capacity, refill_per_second, refill_period_seconds) VALUES
			('even', 'create-order', 100, 50, 1), ('moving', 'create-order', 200, 100, 1), ('light', 'create-order', 100, 50, 1), ('minute', 'create-order', 5, 5, 60)`)
		w.tenants(t, "even", "moving", "light", "minute")
	})
	f := w.begin(t, *chaosSeed, flows...)
	wait(t, 3*time.Second) // the fast loop begins to move shares
	for _, e := range schedule(*chaosSeed, *chaosFor, w.faults(t)) {
		wait(t, e.at-time.Since(f.start))
		t.Logf("%6.1f s  %s", time.Since(f.start).Seconds(), e.name)
		e.do(t)
	}
	healed := time.Now()
	wait(t, 3*time.Second)
	f.end()
	testenv.Eventually(t, 2*patient, func() error {
		for _, g := range w.deployment.gateways() {
			if err := g.healthy(); err != nil {
				return err
			}
		}
		for _, fl := range flows {
			if err := w.conserved(limit.Key{Tenant: fl.tenant, Route: fl.route}); err != nil {
				return err
			}
		}
		return nil
	})
	t.Logf("seed %d: all in order %.1f s after the last fault; %.0f keys spoken of in messages", *chaosSeed, time.Since(healed).Seconds(), w.messages())
	w.verdicts(t, f)
}

// conserved tells whether all regions hold exactly the whole of a key, none of it in flight, and are active.
func (w *world) conserved(key limit.Key) error {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	sum, absent := limit.Share(0), ""
	held := map[string]limit.Share{}
	for _, s := range w.sites {
		v, err := w.regions[s.name].store().HMGet(ctx, key.Redis(), "share", "phase").Result()
		if err != nil {
			return fmt.Errorf("%s of %s: %w", key, s.name, err)
		}
		if v[1] != nil {
			return fmt.Errorf("%s in %s is %v", key, s.name, v[1])
		}
		if v[0] == nil {
			absent = s.name
			continue
		}
		share, err := redis.NewStringResult(fmt.Sprint(v[0]), nil).Int64()
		if err != nil {
			return fmt.Errorf("share of %s in %s: %w", key, s.name, err)
		}
		held[s.name] = limit.Share(share)
		sum += limit.Share(share)
	}
	switch {
	case len(held) == 0: // it has never moved
		return nil
	case absent != "":
		return fmt.Errorf("%s has moved, and %s has no rights to it; the others have %v", key, absent, held)
	case sum != limit.Whole:
		return fmt.Errorf("shares of %s add up to %d: %v", key, sum, held)
	}
	return nil
}
