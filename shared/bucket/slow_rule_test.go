package bucket

import (
	"context"
	"strconv"
	"testing"
	"time"

	"partidor.dev/partidor/shared/limit"
)

// Rules whose tokens are few and far between, where a lost fraction or a bucket forgotten too early would show.
func TestSlowRules(t *testing.T) {
	const second = int64(time.Second / time.Microsecond)
	w := newWorld(t)
	for _, tc := range []struct {
		name string
		rule limit.Rule
		// idle seconds, then asks of one token each, of which so many are admitted; all in turn.
		idle, asks, admitted []int64
	}{
		{"limits 41: 5 per week, 6 at once", limit.Rule{Capacity: 5, Refill: 5, PeriodSeconds: 604_800}, []int64{0}, []int64{6}, []int64{5}},
		{"limits 55: an idle hour saves up one burst only", limit.Rule{Capacity: 1, Refill: 1, PeriodSeconds: 1}, []int64{0, 3600}, []int64{1, 25}, []int64{1, 1}},
		{"limits 59: 1 per 10 s, burst 5, after 20 s two", limit.Rule{Capacity: 5, Refill: 1, PeriodSeconds: 10}, []int64{0, 20}, []int64{6, 4}, []int64{5, 2}},
		{"limits 10: refusals cost nothing", limit.Rule{Capacity: 10, Refill: 10, PeriodSeconds: 3600}, []int64{0, 360}, []int64{50, 3}, []int64{10, 1}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w.reset()
			for name, store := range map[string]Store{"redis": w.redis, "memory": w.memory} {
				w.now = epoch
				for i := range tc.idle {
					w.advance(tc.idle[i] * second)
					got := int64(0)
					for range tc.asks[i] {
						if mustTake(t, store, one(&tc.rule, 1)).Outcome == limit.Allowed {
							got++
						}
					}
					if got != tc.admitted[i] {
						t.Errorf("%s, after %d s: %d of %d admitted, want %d", name, tc.idle[i], got, tc.asks[i], tc.admitted[i])
					}
				}
			}
		})
	}
}

// A bucket is kept at least until it is full again; less would refill it. (limits 59, request-path 34)
func TestBucketsOutliveTheirRefill(t *testing.T) {
	w := newWorld(t)
	for _, rule := range []*limit.Rule{
		{Capacity: 5, Refill: 1, PeriodSeconds: 10}, {Capacity: 1, Refill: 1, PeriodSeconds: 600}, {Capacity: 1, Refill: 1000, PeriodSeconds: 1},
	} {
		w.reset()
		for range rule.Capacity {
			mustTake(t, w.redis, one(rule, 1))
		}
		text := w.client.HGet(context.Background(), "test:ttl", orders.Redis()).Val()
		ttl, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			t.Fatalf("TTL %q", text)
		}
		fill := rule.Capacity * 1000 * rule.PeriodSeconds / rule.Refill
		if ttl < max(1000, fill) || ttl > max(1000, 2*fill)+1 {
			t.Errorf("%+v: TTL %d ms, time to fill %d ms", rule, ttl, fill)
		}
	}
}
