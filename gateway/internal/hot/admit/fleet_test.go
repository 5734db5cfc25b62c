package admit

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"partidor.dev/partidor/shared/limit"
	"partidor.dev/partidor/shared/testenv"
)

// scriptCalls is how many script calls the server has run.
func scriptCalls(t *testing.T, c *redis.Client) (n int64) {
	t.Helper()
	info, err := c.InfoMap(t.Context(), "commandstats").Result()
	if err != nil {
		t.Fatal(err)
	}
	for name, stat := range info["Commandstats"] {
		if !strings.HasPrefix(name, "cmdstat_eval") {
			continue
		}
		for field := range strings.SplitSeq(stat, ",") {
			if v, ok := strings.CutPrefix(field, "calls="); ok {
				var calls int64
				for _, digit := range v {
					calls = calls*10 + int64(digit-'0')
				}
				n += calls
			}
		}
	}
	return n
}

// fleetOf is the instances of one region on one Redis, each with its background part running.
func fleetOf(t *testing.T, addr string, n int, rule func(*limit.Rule), capacity, refill int64) []*gateway {
	t.Helper()
	h := rules(t, set("*", "items", capacity, refill, rule))
	var fleet []*gateway
	for range n {
		g := newGateway(t, addr, capacity, refill, unhurried(t, addr), func(o *Options) {
			o.Rules, o.Instances = h, func() int { return n }
		})
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan struct{})
		go func() {
			defer close(done)
			_ = g.Run(ctx)
		}()
		t.Cleanup(func() {
			cancel()
			<-done
		})
		fleet = append(fleet, g)
	}
	return fleet
}

// flood sends perSecond requests a second for d, in turn to every instance, from one goroutine each.
func flood(t *testing.T, fleet []*gateway, tenant string, d time.Duration, perSecond int, m *met) {
	t.Helper()
	done := make(chan struct{})
	for _, g := range fleet {
		go func() {
			defer func() { done <- struct{}{} }()
			g.load(t, tenant, d, perSecond/len(fleet), m)
		}()
	}
	for range fleet {
		<-done
	}
}

// stretches repeats a stretch of load, each on a tenant of its own, until one shows what is wanted. A flood that the machine has
// interrupted says nothing of what a flood gets; what must hold in any case is judged by the stretch itself.
func stretches(t *testing.T, one func(tenant string) error) {
	t.Helper()
	var fault error
	for i := range 20 {
		if fault = one(fmt.Sprintf("t%d", i)); fault == nil || t.Failed() {
			return
		}
	}
	t.Errorf("in each of 20 stretches, at last: %v", fault)
}

// Case limits 73 on a real Redis: three instances, flooded at five times the limit. Without prefetch nothing passes capacity +
// rate·time; with it, 5 % of the capacity more at most. Either way nothing worth mentioning is lost.
func TestFleetUnderFlood(t *testing.T) {
	for name, tc := range map[string]struct {
		rule  func(*limit.Rule)
		extra float64
	}{
		"asked one by one": {func(*limit.Rule) {}, 0},
		"prefetch":         {prefetch, 0.05},
	} {
		t.Run(name, func(t *testing.T) {
			r := testenv.StartRedis(t)
			const capacity, rate = 300, 300
			fleet := fleetOf(t, r.Addr, 3, tc.rule, capacity, rate)
			stretches(t, func(tenant string) error {
				m := new(met)
				began := time.Now()
				flood(t, fleet, tenant, 3*time.Second, 1500, m)
				passed := time.Since(began).Seconds()
				n, least, most := float64(m.admitted.Load()), (capacity+rate*3)*0.97, capacity*(1+tc.extra)+rate*passed+1
				if n > most {
					t.Errorf("%.0f admitted in %.2f s, want at most %.0f", n, passed, most)
				}
				if m.fallback.Load() > 0 {
					t.Errorf("%d by the fallback", m.fallback.Load())
				}
				if n < least {
					return fmt.Errorf("%.0f admitted in %.2f s, want at least %.0f", n, passed, least)
				}
				return nil
			})
		})
	}
}

// DESIGN §9 on a real Redis: a hot key over several instances, at most 0.02 script calls per decision once warm.
func TestFleetPrefetchSavesCalls(t *testing.T) {
	r := testenv.StartRedis(t)
	fleet := fleetOf(t, r.Addr, 4, prefetch, 20_000, 20_000)
	flood(t, fleet, "t1", time.Second, 2400, new(met))
	c := r.Client()
	before, m := scriptCalls(t, c), new(met)
	flood(t, fleet, "t1", 2*time.Second, 2400, m)
	calls := scriptCalls(t, c) - before
	per := float64(calls) / float64(m.all())
	t.Logf("%d script calls for %d decisions: %.4f each", calls, m.all(), per)
	if per > 0.04 {
		t.Errorf("%.4f calls per decision", per)
	}
	if m.admitted.Load() != m.all() {
		t.Errorf("%d of %d admitted", m.admitted.Load(), m.all())
	}
}

// Case request-path 77 on a real Redis: two instances, one tenant far over its limit, another within it.
func TestHotTenantLeavesRedisAlone(t *testing.T) {
	r := testenv.StartRedis(t)
	fleet := fleetOf(t, r.Addr, 2, func(*limit.Rule) {}, 200, 100)
	c := r.Client()
	stretches(t, func(tenant string) error {
		hot, calm := new(met), new(met)
		done := make(chan struct{})
		before := scriptCalls(t, c)
		go func() {
			defer close(done)
			flood(t, fleet, "calm "+tenant, 2*time.Second, 20, calm)
		}()
		began := time.Now()
		flood(t, fleet, tenant, 2*time.Second, 3_000, hot)
		passed := time.Since(began).Seconds()
		<-done
		calls := scriptCalls(t, c) - before
		t.Logf("%d script calls for %d decisions in %.1f s", calls, hot.all(), passed)
		if per := float64(calls) / passed; per > 800 {
			t.Errorf("%.0f script calls a second", per)
		}
		n := float64(hot.admitted.Load())
		if n > 200+100*passed+1 {
			t.Errorf("%.0f admitted in %.2f s at 100/s and a burst of 200", n, passed)
		}
		if calm.admitted.Load() != calm.all() {
			t.Errorf("the other tenant: %d of %d admitted", calm.admitted.Load(), calm.all())
		}
		if n < (200+100*2)*0.95 {
			return fmt.Errorf("%.0f admitted in %.2f s at 100/s and a burst of 200", n, passed)
		}
		return nil
	})
}
