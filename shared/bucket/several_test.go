package bucket

import (
	"testing"
	"time"

	"partidor.dev/partidor/shared/limit"
)

// Several limits in one call: all or nothing, and the answer speaks of the strictest.

func routeAndTenant(route, tenant *limit.Rule, cost int64) []Limit {
	limits := append(one(route, cost), one(tenant, cost)...)
	limits[1].Key.Route = limit.TenantRoute
	return limits
}

// The tenant's limit is empty, the route's has 50 left: 20 refusals charge neither. (request-path C25; limits D43)
func TestAllOrNothing(t *testing.T) {
	w := newWorld(t)
	w.reset()
	limits := routeAndTenant(&limit.Rule{Capacity: 60, Refill: 1, PeriodSeconds: 3600}, &limit.Rule{Capacity: 10, Refill: 1, PeriodSeconds: 60}, 1)
	for _, store := range []Store{w.redis, w.memory} {
		for range 10 {
			mustTake(t, store, limits)
		}
		for range 20 {
			d := mustTake(t, store, limits)
			if d.Outcome != limit.Refused || d.Key.Route != limit.TenantRoute || d.RetryAfter != time.Minute {
				t.Fatalf("%v of %v, retry after %v", d.Outcome, d.Key, d.RetryAfter)
			}
		}
		if d := mustTake(t, store, limits[:1]); d.Remaining != 49 {
			t.Errorf("route has %d left, want 49", d.Remaining)
		}
	}
}

// The other way round, and both empty: the one that refuses for longest speaks.
func TestStrictestRefusalSpeaks(t *testing.T) {
	w := newWorld(t)
	w.reset()
	limits := routeAndTenant(&limit.Rule{Capacity: 1, Refill: 1, PeriodSeconds: 10}, &limit.Rule{Capacity: 1, Refill: 1, PeriodSeconds: 20}, 1)
	if d := mustTake(t, w.redis, limits); d.Outcome != limit.Allowed {
		t.Fatal(d.Outcome)
	}
	if d := mustTake(t, w.redis, limits); d.Key.Route != limit.TenantRoute || d.RetryAfter != 20*time.Second {
		t.Errorf("%v, retry after %v", d.Key, d.RetryAfter)
	}
}

// Above a capacity no waiting helps, and nothing is charged. (limits D40)
func TestTooLarge(t *testing.T) {
	w := newWorld(t)
	w.reset()
	limits := one(&limit.Rule{Capacity: 10, Refill: 1, PeriodSeconds: 3600}, 11)
	for _, store := range []Store{w.redis, w.memory} {
		if d := mustTake(t, store, limits); d.Outcome != limit.TooLarge || d.RetryAfter != 0 {
			t.Errorf("%v, retry after %v", d.Outcome, d.RetryAfter)
		}
	}
	if n := w.client.Exists(t.Context(), orders.Redis()).Val(); n != 0 {
		t.Error("a bucket was written")
	}
}

// Above the slice, though not above the limit: refused with a wait, since shares move.
func TestAboveTheSlice(t *testing.T) {
	w := newWorld(t)
	w.reset()
	limits := one(&limit.Rule{Capacity: 10, Refill: 1, PeriodSeconds: 1}, 5)
	limits[0].Base = 300_000
	if d := mustTake(t, w.redis, limits); d.Outcome != limit.Refused || d.RetryAfter < time.Second {
		t.Errorf("%v, retry after %v", d.Outcome, d.RetryAfter)
	}
}

// A refusal writes nothing: neither the hash nor its time to live changes. (DESIGN §4)
func TestRefusalWritesNothing(t *testing.T) {
	w := newWorld(t)
	w.reset()
	limits := one(&limit.Rule{Capacity: 1, Refill: 1, PeriodSeconds: 3600}, 1)
	mustTake(t, w.redis, limits)
	before := w.fields(orders)
	ttl := w.client.HGetAll(t.Context(), "test:ttl").Val()[orders.Redis()]
	if ttl != "7200000" {
		t.Errorf("time to live %s ms, want twice the time to fill", ttl)
	}
	dirty := w.client.InfoMap(t.Context(), "persistence").Val()["Persistence"]["rdb_changes_since_last_save"]
	for range 5 {
		mustTake(t, w.redis, limits)
	}
	if after := w.fields(orders); len(after) != len(before) || after["ts"] != before["ts"] || after["tokens"] != before["tokens"] {
		t.Errorf("before %v, after %v", before, after)
	}
	if again := w.client.InfoMap(t.Context(), "persistence").Val()["Persistence"]["rdb_changes_since_last_save"]; again != dirty {
		t.Errorf("writes %s, before %s", again, dirty)
	}
}

// 1 per 10 s, burst 5: the TTL is at least the time to full, and 20 s after the last token exactly two are there. Nothing
// builds up beyond the capacity. (limits F55, F59, F61, E53)
func TestIdleBucketsFillAndNoMore(t *testing.T) {
	w := newWorld(t)
	w.reset()
	limits := one(&limit.Rule{Capacity: 5, Refill: 1, PeriodSeconds: 10}, 1)
	drain := func() (n int) {
		for mustTake(t, w.redis, limits).Outcome == limit.Allowed {
			n++
		}
		return n
	}
	if n := drain(); n != 5 {
		t.Errorf("admitted %d, want the burst of 5", n)
	}
	if ttl := w.client.HGetAll(t.Context(), "test:ttl").Val()[orders.Redis()]; ttl != "100000" {
		t.Errorf("time to live %s ms, want 100000", ttl)
	}
	w.advance(20_000_000)
	if n := drain(); n != 2 {
		t.Errorf("20 s later admitted %d, want 2", n)
	}
	w.advance(3_600_000_000)
	if n := drain(); n != 5 {
		t.Errorf("an hour later admitted %d, want 5", n)
	}
}

// Every write between two settings of the TTL leaves at least one time to fill.
func TestTTLNeverFallsBelowTimeToFill(t *testing.T) {
	w := newWorld(t)
	w.reset()
	limits := one(&limit.Rule{Capacity: 100, Refill: 10, PeriodSeconds: 1}, 1)
	set, last := int64(0), ""
	for range 400 {
		w.client.HDel(t.Context(), "test:ttl", orders.Redis())
		mustTake(t, w.redis, limits)
		if ttl := w.client.HGet(t.Context(), "test:ttl", orders.Redis()).Val(); ttl != "" {
			set, last = w.now, ttl
		}
		if last != "20000" || set+20_000_000-w.now < 10_000_000 {
			t.Fatalf("TTL %s ms set %d µs ago", last, w.now-set)
		}
		w.advance(173_000)
	}
}
