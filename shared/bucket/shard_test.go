package bucket

import (
	"context"
	"testing"
	"time"

	"partidor.dev/partidor/shared/limit"
)

// Shards begin empty, so that changing their number refills nobody; they fill at their part of the rate, and all together
// never hold more than the slice.
func TestShards(t *testing.T) {
	w := newWorld(t)
	w.reset()
	rule := &limit.Rule{Capacity: 40, Refill: 40, PeriodSeconds: 1, Shards: 4}
	if d := mustTake(t, w.redis, one(rule, 1)); d.Outcome != limit.Refused || d.RetryAfter != 100*time.Millisecond {
		t.Fatalf("a new shard: %v, retry after %v, want refused for a shard's token", d.Outcome, d.RetryAfter)
	}
	for range 60 { // every shard is begun: two are asked at a time
		mustTake(t, w.redis, one(rule, 1))
	}
	keys, err := w.client.Keys(context.Background(), "rl:shop-a:create-order:*").Result()
	if err != nil || len(keys) != 4 {
		t.Fatalf("keys %v, %v", keys, err)
	}
	w.advance(60_000_000)
	admitted, refusals := 0, 0
	for refusals < 100 {
		if mustTake(t, w.redis, one(rule, 1)).Outcome == limit.Allowed {
			admitted++
		} else {
			refusals++
		}
	}
	if admitted != 40 {
		t.Errorf("admitted %d of a full slice of 40", admitted)
	}
	w.advance(500_000)
	d := mustTake(t, w.redis, one(rule, 1))
	if d.Outcome != limit.Allowed || d.Remaining != 16 {
		t.Errorf("half a second later: %v, remaining %d, want four shards of 4", d.Outcome, d.Remaining)
	}
}

// With other limits in the call, which must share a slot, a sharded rule is one bucket.
func TestShardsWithOtherLimits(t *testing.T) {
	w := newWorld(t)
	w.reset()
	limits := append(one(&limit.Rule{Capacity: 4, Refill: 1, PeriodSeconds: 3600, Shards: 4}, 1), one(&limit.DefaultRule, 1)...)
	limits[1].Key.Route = limit.TenantRoute
	for want := int64(3); want >= 0; want-- {
		if d := mustTake(t, w.redis, limits); d.Outcome != limit.Allowed || d.Remaining != want {
			t.Fatalf("%v, remaining %d, want %d", d.Outcome, d.Remaining, want)
		}
	}
}
