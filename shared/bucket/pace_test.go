package bucket

import (
	"context"
	"sync"
	"testing"
	"time"

	"partidor.dev/partidor/shared/limit"
)

// Callers at a pace, by the numbers of the behaviour cases, in Redis and in memory on one clock that the test moves.
func TestPaces(t *testing.T) {
	rule := func(capacity, refill, period int64) *limit.Rule {
		return &limit.Rule{Capacity: capacity, Refill: refill, PeriodSeconds: period}
	}
	const ms, second = int64(1000), int64(1_000_000)
	w := newWorld(t)
	for name, tc := range map[string]struct {
		rule *limit.Rule
		// every µs for so many rounds, at most atOnce tokens are taken one by one, until one is refused.
		every          int64
		rounds, atOnce int
		least, most    int
		retry, resets  time.Duration // of the refusal after the last round; not asked for where zero
	}{
		"request-path 35: 100/s, burst 1, three at once":        {rule(1, 100, 1), 10 * ms, 50, 3, 50, 50, 10 * time.Millisecond, 10 * time.Millisecond},
		"request-path 37: 10/s each 150 ms":                     {rule(1, 10, 1), 150 * ms, 60, 3, 60, 60, 100 * time.Millisecond, 100 * time.Millisecond},
		"limits 32: 10/s each 100 ms":                           {rule(1, 10, 1), 100 * ms, 100, 1, 99, 101, 100 * time.Millisecond, 100 * time.Millisecond},
		"limits 52: 10/s, all there is each 150 ms for 15 s":    {rule(10, 10, 1), 150 * ms, 100, 100, 10 + 148, 10 + 149, 0, 0},
		"limits 56: 17 per 30 s, two a second for 30 s":         {rule(17, 17, 30), 500 * ms, 60, 1, 33, 34, 0, 0},
		"limits 58: 10 a minute, one a second for 5 min":        {rule(1, 10, 60), second, 300, 1, 49, 51, 0, 0},
		"limits 49: 6000/s, burst 6000, drained at once":        {rule(6000, 6000, 1), 0, 1, 7000, 6000, 6000, 0, 0},
		"limits 38: 3600 an hour, burst 6, drained":             {rule(6, 3600, 3600), 0, 1, 10, 6, 6, time.Second, 6 * time.Second},
		"limits 35: 3/s, drained":                               {rule(3, 3, 1), 0, 1, 10, 3, 3, 333_334 * time.Microsecond, time.Second},
		"request-path 34: 1 in 10 min, asked every second":      {rule(1, 1, 600), second, 601, 1, 2, 2, 10 * time.Minute, 10 * time.Minute},
		"request-path 34: 1 in 10 min, up to a second too soon": {rule(1, 1, 600), second, 600, 1, 1, 1, time.Second, time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			w.reset()
			for kind, store := range map[string]Store{"redis": w.redis, "memory": w.memory} {
				w.now = epoch
				w.advance(0)
				got := 0
				for round := range tc.rounds {
					if round > 0 {
						w.advance(tc.every)
					}
					for range tc.atOnce {
						if mustTake(t, store, one(tc.rule, 1)).Outcome != limit.Allowed {
							break
						}
						got++
					}
				}
				if got < tc.least || got > tc.most {
					t.Errorf("%s: %d admitted, want %d to %d", kind, got, tc.least, tc.most)
				}
				if tc.retry == 0 {
					continue
				}
				if d := mustTake(t, store, one(tc.rule, 1)); d.Outcome != limit.Refused || !near(d.RetryAfter, tc.retry) || !near(d.ResetAfter, tc.resets) {
					t.Errorf("%s: then %v, retry after %v, full after %v, want %v and %v", kind, d.Outcome, d.RetryAfter, d.ResetAfter, tc.retry, tc.resets)
				}
			}
		})
	}
}

// near: a wait is never too short, and too long by no more than the step in which levels are kept is worth.
func near(got, want time.Duration) bool { return got >= want && got <= want+10*time.Microsecond }

// Large numbers are exact: the whole capacity at once, and not one more. (limits 49, 50; request-path 38)
func TestLargeCapacitiesAreExact(t *testing.T) {
	w := newWorld(t)
	for _, capacity := range []int64{65_535, 1<<31 - 1, 1 << 31, 1<<32 + 1, 1<<53 - 2, limit.MaxTokens} {
		rule := &limit.Rule{Capacity: capacity, Refill: 1, PeriodSeconds: limit.MaxPeriodSeconds}
		w.reset()
		for kind, store := range map[string]Store{"redis": w.redis, "memory": w.memory} {
			if d := mustTake(t, store, one(rule, capacity-1)); d.Outcome != limit.Allowed || d.Remaining != 1 {
				t.Errorf("%s: %d of %d: %v, %d left", kind, capacity-1, capacity, d.Outcome, d.Remaining)
			}
			if d := mustTake(t, store, one(rule, 1)); d.Outcome != limit.Allowed || d.Remaining != 0 {
				t.Errorf("%s: the last of %d: %v, %d left", kind, capacity, d.Outcome, d.Remaining)
			}
			if d := mustTake(t, store, one(rule, 1)); d.Outcome != limit.Refused || d.Remaining != 0 {
				t.Errorf("%s: one more than %d: %v, %d left", kind, capacity, d.Outcome, d.Remaining)
			}
		}
	}
}

// 128 workers on one key meet no error, and together take what is there. (limits 71)
func TestManyWorkersOnOneKey(t *testing.T) {
	w := newWorld(t)
	w.reset()
	const workers, each = 128, 20
	rule := &limit.Rule{Capacity: workers * each / 2, Refill: 1, PeriodSeconds: limit.MaxPeriodSeconds}
	var all sync.WaitGroup
	var mu sync.Mutex
	taken := 0
	for range workers {
		all.Go(func() {
			for range each {
				d, err := w.redis.Take(context.Background(), one(rule, 1))
				if err != nil {
					t.Error(err)
					return
				}
				if d.Outcome == limit.Allowed {
					mu.Lock()
					taken++
					mu.Unlock()
				}
			}
		})
	}
	all.Wait()
	if taken != workers*each/2 {
		t.Errorf("%d taken of %d", taken, workers*each/2)
	}
}
