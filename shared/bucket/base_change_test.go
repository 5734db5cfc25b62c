package bucket

import (
	"testing"

	"partidor.dev/partidor/shared/limit"
)

// A change of the base split from 70/30 to 30/70: what the region that gains may admit while the other one may have used its former
// part already.

// based is one request of a region with this base share, of which late may be used elsewhere.
func based(k limit.Key, rule *limit.Rule, number int64, base, late limit.Share) []Limit {
	return []Limit{{Key: k, Rule: rule, Revision: limit.Revision{Epoch: 1, Number: number}, Base: base, Late: late, Cost: 1}}
}

// admitted sends requests until one is refused.
func admitted(tb testing.TB, store Store, l []Limit) (n int) {
	tb.Helper()
	for mustTake(tb, store, l).Outcome == limit.Allowed {
		n++
	}
	return n
}

func TestBaseSplitChangeStaysWithinTheWindow(t *testing.T) {
	used, fresh := limit.Key{Tenant: "shop-a", Route: "used"}, limit.Key{Tenant: "shop-a", Route: "fresh"}
	for algorithm := limit.FixedWindow; algorithm <= limit.SlidingWindowCounter; algorithm++ {
		t.Run(algorithm.String(), func(t *testing.T) {
			eu, us := newWorld(t), newWorld(t)
			rule := &limit.Rule{Capacity: 100, PeriodSeconds: 1, Algorithm: algorithm, WindowSeconds: 60}
			for _, region := range []func(w *world) Store{func(w *world) Store { return w.redis }, func(w *world) Store { return w.memory }} {
				eu.reset()
				us.reset()
				if n := admitted(t, region(eu), based(used, rule, 1, 700_000, 0)); n != 70 {
					t.Errorf("eu with 70 %% admitted %d of 100", n)
				}
				if n := admitted(t, region(us), based(used, rule, 1, 300_000, 0)); n != 30 {
					t.Errorf("us with 30 %% admitted %d of 100", n)
				}
				// The whole limit is used up in this window. The same split the other way round gives nobody more of it.
				if n := admitted(t, region(eu), based(used, rule, 2, 300_000, 0)); n != 0 {
					t.Errorf("eu, lowered to 30 %%, admitted %d more", n)
				}
				if n := admitted(t, region(us), based(used, rule, 2, 700_000, 400_000)); n != 0 {
					t.Errorf("us, raised to 70 %% of which 40 are late, admitted %d more", n)
				}
				if n := admitted(t, region(us), based(fresh, rule, 2, 700_000, 400_000)); n != 30 {
					t.Errorf("us, raised, of a key without a bucket: admitted %d, want 30", n)
				}
				d := mustTake(t, region(us), based(fresh, rule, 2, 700_000, 400_000))
				if d.Share != 300_000 || d.Remaining != 0 {
					t.Errorf("share in force %d, remaining %d", d.Share, d.Remaining)
				}
				// Who has not heard of the raise counts by what it knows, though the bucket goes by the newer rule.
				if n := admitted(t, region(us), based(fresh, rule, 1, 300_000, 0)); n != 0 {
					t.Errorf("us, by an instance that knows the old split, admitted %d more", n)
				}
				eu.advance(120_000_000)
				us.advance(120_000_000)
				e, u := admitted(t, region(eu), based(used, rule, 2, 300_000, 0)), admitted(t, region(us), based(used, rule, 2, 700_000, 0))
				if e != 30 || u != 70 {
					t.Errorf("after the window eu admitted %d and us %d, want 30 and 70", e, u)
				}
			}
		})
	}
}

// The part that is late comes into force in the middle of a window: from then on the whole base counts, and no more.
func TestLateShareComesIntoForce(t *testing.T) {
	w := newWorld(t)
	rule := &limit.Rule{Capacity: 10, PeriodSeconds: 1, Algorithm: limit.FixedWindow, WindowSeconds: 3600}
	for _, store := range []func() Store{func() Store { return w.redis }, func() Store { return w.memory }} {
		w.reset()
		first := admitted(t, store(), based(orders, rule, 2, 700_000, 400_000))
		second := admitted(t, store(), based(orders, rule, 2, 700_000, 0))
		if first != 3 || second != 4 {
			t.Errorf("admitted %d while 40 %% are late and %d more afterwards, want 3 and 4", first, second)
		}
	}
}

// A token bucket that is there keeps its tokens when the base split changes. One that is not there was full under the old share,
// and the rest comes in at the new rate.
func TestMissingTokenBucketBeginsWithoutTheLateShare(t *testing.T) {
	w := newWorld(t)
	rule := &limit.Rule{Capacity: 100, Refill: 10, PeriodSeconds: 1}
	for _, store := range []func() Store{func() Store { return w.redis }, func() Store { return w.memory }} {
		w.reset()
		late := based(orders, rule, 2, 700_000, 400_000)
		if n := admitted(t, store(), late); n != 30 {
			t.Errorf("began with %d tokens, want 30", n)
		}
		w.advance(2_000_000)
		if n := admitted(t, store(), late); n != 14 {
			t.Errorf("2 s at 7/s admitted %d, want 14", n)
		}
		w.advance(60_000_000)
		if n := admitted(t, store(), late); n != 70 {
			t.Errorf("once filled it admitted %d, want 70", n)
		}
		// A request that is refused starts it as well: it fills from then on.
		w.reset()
		big := based(orders, rule, 2, 700_000, 400_000)
		big[0].Cost = 40
		if d := mustTake(t, store(), big); d.Outcome != limit.Refused {
			t.Errorf("40 of 30: %v", d.Outcome)
		}
		w.advance(2_000_000)
		if d := mustTake(t, store(), big); d.Outcome != limit.Allowed {
			t.Errorf("40 of 44: %v", d.Outcome)
		}
	}
}
