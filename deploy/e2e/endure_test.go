package e2e

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"testing"
	"time"

	"partidor.dev/partidor/shared/limit"
	"partidor.dev/partidor/shared/testenv"
)

// TestFaults: three regions of real processes, in failure domains of their own, so that leases run: with a Redis that writes to
// disk, one that forgets, and a cluster, under traffic. One region is cut off past its lease and its share minted anew for the
// others, while processes are killed and paused and its Redis loses its data. Every interval of every limit must keep its bound,
// and afterwards no share may be missing or doubled. `make chaos` goes further.
func TestFaults(t *testing.T) {
	w := faultyWorld(t)
	w.endure(t, 1, 0, [][]fault{
		{w.remints(w.cutOff("us"))},
		{w.gatewayDown("eu", 0), w.redisDown("us")},
		{w.gatewayPaused("eu", 1, beyondRegion)},
	})
}

func faultyWorld(t *testing.T) *world {
	t.Helper()
	return newWorld(t, []site{
		{name: "eu", base: 500_000, gateways: 2, durable: true, domain: "a"}, {name: "us", base: 300_000, gateways: 1, domain: "b"},
		{name: "ap", base: 200_000, gateways: 1, cluster: true, domain: "c"},
	}, func(w *world) {
		w.exec(t, `INSERT INTO parameter (name, value) VALUES ('control_domain', '"d"')`)
		w.exec(t, `INSERT INTO rate_limit_rule (tenant_id, route_id, capacity, refill_per_second, refill_period_seconds) VALUES
			('even', 'create-order', 100, 50, 1), ('moving', 'create-order', 200, 100, 1), ('light', 'create-order', 100, 50, 1), ('minute', 'create-order', 5, 5, 60)`)
		w.tenants(t, "even", "moving", "light", "minute")
	})
}

// endure lets the faults of the lanes happen under traffic, waits until everything has healed, and judges every decision.
func (w *world) endure(t *testing.T, seed uint64, length time.Duration, lanes [][]fault) {
	t.Helper()
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
	f := w.begin(t, seed, flows...)
	testenv.Eventually(t, patient, func() error { // the fast loop begins to move shares
		for _, s := range w.sites {
			if _, moved := w.regions[s.name].share(t, "moving"); moved {
				return nil
			}
		}
		return errors.New("nothing has moved yet")
	})
	w.disturb(t, seed, length, lanes...)
	mended := time.Now()
	for err := w.whole(flows, false); err != nil; err = w.whole(flows, false) {
		if time.Since(mended) > patient { // a machine that loses leases because it is busy: it gets less to do
			t.Logf("not healed under traffic: %v", err)
			break
		}
		wait(t, 100*time.Millisecond)
	}
	active := time.Since(mended)
	f.end()
	testenv.Eventually(t, 3*patient, func() error { return w.whole(flows, true) })
	t.Logf("seed %d: all regions use their shares again %.1f s after the last fault; shares minted anew %d times; %.0f keys spoken of in messages",
		seed, active.Seconds(), w.minted(), w.messages())
	w.verdicts(t, f)
}

// whole tells whether every gateway is well and every region has its rights, and at rest whether they are exactly the whole.
func (w *world) whole(flows []flow, rest bool) error {
	for _, g := range w.deployment.gateways() {
		if err := g.healthy(); err != nil {
			return err
		}
	}
	for _, fl := range flows {
		if err := w.conserved(limit.Key{Tenant: fl.tenant, Route: fl.route}, rest); err != nil {
			return err
		}
	}
	return nil
}

// conserved tells whether all regions that hold a key are active, and at rest, when nothing is in flight, whether they hold exactly
// the whole of it.
func (w *world) conserved(key limit.Key, rest bool) error {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	sum, held := limit.Share(0), map[string]limit.Share{}
	for _, s := range w.sites {
		v, err := w.regions[s.name].store().HMGet(ctx, key.Redis(), "share", "phase").Result()
		if err != nil {
			return fmt.Errorf("%s of %s: %w", key, s.name, err)
		}
		if v[1] != nil {
			return fmt.Errorf("%s in %s is %v", key, s.name, v[1])
		}
		share := int64(s.base) // while it has never moved there
		if v[0] != nil {
			if share, err = strconv.ParseInt(fmt.Sprint(v[0]), 10, 64); err != nil {
				return fmt.Errorf("share of %s in %s: %w", key, s.name, err)
			}
		}
		held[s.name] = limit.Share(share)
		sum += limit.Share(share)
	}
	if rest && sum != limit.Whole {
		return fmt.Errorf("shares of %s add up to %d: %v", key, sum, held)
	}
	return nil
}
