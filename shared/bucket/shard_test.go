package bucket

import (
	"context"
	"fmt"
	"strconv"
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

// A cost that no shard can ever hold is too large, and says no time to come back; the largest that one can hold is only a matter of
// time.
func TestCostAboveAShard(t *testing.T) {
	w := newWorld(t)
	w.reset()
	rule := &limit.Rule{Capacity: 400, Refill: 400, PeriodSeconds: 1, Shards: 4}
	for _, c := range []struct {
		base limit.Share
		cost int64
		want limit.Outcome
	}{
		{limit.Whole, 100, limit.Refused}, {limit.Whole, 101, limit.TooLarge}, {500_000, 50, limit.Refused}, {500_000, 51, limit.TooLarge},
	} {
		l := one(rule, c.cost)
		l[0].Base, l[0].Key.Route = c.base, "share-"+strconv.Itoa(int(c.base))
		if d := mustTake(t, w.redis, l); d.Outcome != c.want || (d.Outcome == limit.Refused) != (d.RetryAfter > 0) {
			t.Errorf("cost %d of a shard of %d: %v, retry after %v, want %v", c.cost, 100*c.base/limit.Whole, d.Outcome, d.RetryAfter, c.want)
		}
	}
}

// Any change of the number of shards refills nobody, except that the one bucket of a rule that is no longer sharded begins full:
// one burst, once.
func TestChangingTheNumberOfShards(t *testing.T) {
	for _, c := range []struct{ from, to, most int }{{1, 4, 0}, {4, 8, 0}, {8, 4, 0}, {4, 1, 400}} {
		t.Run(fmt.Sprintf("%d to %d", c.from, c.to), func(t *testing.T) {
			w := newWorld(t)
			w.reset()
			// A token in ten thousand seconds: nothing comes back during the test.
			rule := func(shards int, revision int64) []Limit {
				l := one(&limit.Rule{Capacity: 400, Refill: 1, PeriodSeconds: 10_000, Shards: shards}, 1)
				l[0].Revision.Number = revision
				return l
			}
			drain := func(l []Limit) (admitted int) {
				for refusals := 0; refusals < 60; {
					if mustTake(t, w.redis, l).Outcome == limit.Allowed {
						admitted++
					} else {
						refusals++
					}
				}
				return admitted
			}
			drain(rule(c.from, 1))
			if got := drain(rule(c.to, 2)); got != c.most {
				t.Errorf("%d admitted after the change, want %d", got, c.most)
			}
			if got := drain(rule(c.from, 3)); c.from > 1 && got != 0 {
				t.Errorf("%d admitted after changing back, want 0", got)
			}
		})
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
