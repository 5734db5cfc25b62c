package fallback

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"partidor.dev/partidor/shared/bucket"
	"partidor.dev/partidor/shared/limit"
)

// Whenever Redis goes and comes, for all instances of a region at once and however often, everything admitted stays within the
// stated bound. A single instance, which has seen everything, mints nothing: levels are kept warm and debts are settled. Of
// several, each may have last seen a level that others have drained since, and use its part once per outage.
func TestNoScheduleOfOutagesMintsTokens(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		instances := rapid.IntRange(1, 4).Draw(t, "instances")
		capacity := int64(rapid.IntRange(4, 200).Draw(t, "capacity"))
		rate := int64(rapid.IntRange(1, 100).Draw(t, "rate"))
		now := epoch
		store := bucket.NewMemory(func() time.Time { return now })
		limits := one("t1", rule(capacity, rate), 1)
		terms := Terms{Instances: instances}
		var locals []*Local
		for range instances {
			locals = append(locals, NewLocal(now, 8))
		}
		away, outages := false, 0
		// The ideal: one bucket that everything admitted passes through.
		ideal, last := float64(capacity), now
		deepest := 0.0
		for range rapid.IntRange(1, 400).Draw(t, "steps") {
			now = now.Add(time.Duration(rapid.IntRange(0, 400).Draw(t, "ms")) * time.Millisecond)
			if rapid.IntRange(0, 9).Draw(t, "toggle") == 0 {
				if away = !away; away {
					outages++
				}
			}
			ideal = math.Min(float64(capacity), ideal+now.Sub(last).Seconds()*float64(rate))
			last = now
			for range rapid.IntRange(1, 20).Draw(t, "burst") {
				l := locals[rapid.IntRange(0, instances-1).Draw(t, "instance")]
				cost := int64(rapid.IntRange(1, 3).Draw(t, "cost"))
				if decide(t, l, store, now, limits, terms, cost, away) {
					ideal -= float64(cost)
				}
			}
			deepest = math.Max(deepest, -ideal)
		}
		bound := 1.0
		if instances > 1 {
			bound = float64(instances) * (1 + float64(outages)*math.Max(1, float64(capacity)/float64(instances)))
		}
		if deepest > bound {
			t.Fatalf("%.3f tokens above the limit, at most %.3f", deepest, bound)
		}
	})
}

// decide is what an instance does with one request.
func decide(t *rapid.T, l *Local, store bucket.Store, now time.Time, limits []bucket.Limit, terms Terms, cost int64, away bool) bool {
	ask := []bucket.Limit{limits[0]}
	ask[0].Cost = cost
	if away {
		return l.Take(now, ask, terms).Outcome == limit.Allowed
	}
	ask[0].Owed = l.Claim(now, ask[0].Key)
	d, err := store.Take(t.Context(), ask)
	if err != nil {
		t.Fatal(err)
	}
	l.Observe(now, ask, &d, terms)
	return d.Outcome == limit.Allowed
}
