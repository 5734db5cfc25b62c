package bucket

import (
	"context"
	"errors"
	"flag"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"partidor.dev/partidor/shared/limit"
	"partidor.dev/partidor/shared/testenv"
)

// What limits promise, on a real Redis.

var orders = limit.Key{Tenant: "shop-a", Route: "create-order"}

func one(r *limit.Rule, cost int64) []Limit {
	return []Limit{{Key: orders, Rule: r, Base: limit.Whole, Cost: cost, Revision: limit.Revision{Number: 1}}}
}

func mustTake(tb testing.TB, s Store, limits []Limit) limit.Decision {
	tb.Helper()
	d, err := s.Take(context.Background(), limits)
	if err != nil {
		tb.Fatal(err)
	}
	return d
}

// flood has workers ask stores in turn, n times in all, and counts what was admitted.
func flood(tb testing.TB, stores []*Redis, workers, n int, limits []Limit) int64 {
	tb.Helper()
	var left, admitted atomic.Int64
	left.Store(int64(n))
	var wg sync.WaitGroup
	for i := range workers {
		wg.Go(func() {
			for left.Add(-1) >= 0 {
				d, err := stores[i%len(stores)].Take(context.Background(), limits)
				if err != nil {
					tb.Error(err)
					return
				}
				if d.Outcome == limit.Allowed {
					admitted.Add(1)
				}
			}
		})
	}
	wg.Wait()
	return admitted.Load()
}

func twoStores(tb testing.TB) []*Redis {
	addr := testenv.StartRedis(tb).Addr
	stores := make([]*Redis, 2)
	for i := range stores {
		stores[i] = NewRedis(Options{Client: connect(tb, addr), CallTimeout: 20 * time.Second})
		tb.Cleanup(stores[i].Close)
	}
	return stores
}

// 500 parallel calls on a bucket of 10 over two instances: exactly 10. (request-path C32)
func TestParallelBurstIsExact(t *testing.T) {
	stores := twoStores(t)
	rule := &limit.Rule{Capacity: 10, Refill: 1, PeriodSeconds: limit.MaxPeriodSeconds}
	if got := flood(t, stores, 128, 500, one(rule, 1)); got != 10 {
		t.Errorf("admitted %d, want exactly 10", got)
	}
}

// 1,000 parallel calls never pass the capacity, whatever the algorithm, and meet no error. (limits G71, E41, E49)
func TestParallelCallsNeverPassCapacity(t *testing.T) {
	for _, rule := range []*limit.Rule{
		{Capacity: 100, Refill: 1, PeriodSeconds: 3600},
		{Capacity: 100, PeriodSeconds: 1, Algorithm: limit.FixedWindow, Calendar: limit.CalendarMonth},
		{Capacity: 100, PeriodSeconds: 1, Algorithm: limit.SlidingWindowLog, WindowSeconds: 86_400},
		{Capacity: 100, PeriodSeconds: 1, Algorithm: limit.SlidingWindowCounter, WindowSeconds: 86_400},
	} {
		t.Run(rule.Algorithm.String(), func(t *testing.T) {
			if got := flood(t, twoStores(t), 128, 1000, one(rule, 1)); got != 100 {
				t.Errorf("admitted %d, want exactly 100", got)
			}
		})
	}
}

var floodFor = flag.Duration("flood", 3*time.Second, "how long TestFloodStaysWithinTheLimit floods; make flood does for a minute")

// Flooding on the server's own clock: never above capacity + rate × time, and at least 99 % of it. (request-path F59; limits C29, H73)
func TestFloodStaysWithinTheLimit(t *testing.T) {
	stores := twoStores(t)
	rule := &limit.Rule{Capacity: 400, Refill: 200, PeriodSeconds: 1}
	ctx, cancel := context.WithTimeout(context.Background(), *floodFor)
	defer cancel()
	began := time.Now()
	var admitted, first, last atomic.Int64 // how many, and when the first and the last were known
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			for ctx.Err() == nil {
				d, err := stores[i%2].Take(context.Background(), one(rule, 1))
				if err != nil {
					t.Error(err)
					return
				}
				if d.Outcome == limit.Allowed {
					at := int64(time.Since(began))
					if admitted.Add(1) == 1 {
						first.Store(at)
					}
					last.Store(at)
				}
			}
		})
	}
	wg.Wait()
	// The interval that counts ends with the last admission; a token more covers the time between decision and clock reading.
	bound := 400 + 200*time.Duration(last.Load()).Seconds() + 1
	// The bucket is full until the first decision, which on a busy machine falls long after the beginning.
	least := 0.99*(bound-1-200*time.Duration(first.Load()).Seconds()) - 1
	if got := float64(admitted.Load()); got > bound || got < least {
		t.Errorf("admitted %v, must be from %.1f to %.1f", got, least, bound)
	} else {
		t.Logf("admitted %v in %s, of at most %.1f", got, time.Duration(last.Load()), bound)
	}
}

// 10/s polled each 100 ms for 10 s: 100 ± 1 beyond the burst of one, by the server's clock. (limits C32, E52; request-path D37)
func TestPolledAtItsRate(t *testing.T) {
	w := newWorld(t)
	w.reset()
	rule := &limit.Rule{Capacity: 1, Refill: 10, PeriodSeconds: 1}
	got := 0
	for range 100 {
		if mustTake(t, w.redis, one(rule, 1)).Outcome == limit.Allowed {
			got++
		}
		w.advance(100_000)
	}
	if got < 99 || got > 101 {
		t.Errorf("admitted %d of 100", got)
	}
	w.advance(50_000)
	if d := mustTake(t, w.redis, one(rule, 1)); d.Outcome != limit.Allowed {
		t.Errorf("150 ms after a token: %v", d.Outcome)
	}
	if d := mustTake(t, w.redis, one(rule, 1)); d.Outcome != limit.Refused || d.RetryAfter != 100*time.Millisecond {
		t.Errorf("drained: %v, retry after %v", d.Outcome, d.RetryAfter)
	}
}

// Redis's clock stepped either way: at most one burst, never a block, and no refusal for longer than without the step.
// (limits C31)
func TestServerClockSteps(t *testing.T) {
	for _, rule := range []*limit.Rule{
		{Capacity: 10, Refill: 10, PeriodSeconds: 1},
		{Capacity: 10, PeriodSeconds: 1, Algorithm: limit.FixedWindow, WindowSeconds: 1},
		{Capacity: 10, PeriodSeconds: 1, Algorithm: limit.SlidingWindowLog, WindowSeconds: 1},
		{Capacity: 10, PeriodSeconds: 1, Algorithm: limit.SlidingWindowCounter, WindowSeconds: 1},
	} {
		for _, step := range []time.Duration{time.Hour, -time.Hour} {
			t.Run(rule.Algorithm.String()+step.String(), func(t *testing.T) {
				w := newWorld(t)
				w.reset()
				drain := func() (n int) {
					for mustTake(t, w.redis, one(rule, 1)).Outcome == limit.Allowed {
						n++
					}
					return n
				}
				drain()
				w.advance(step.Microseconds())
				if n := drain(); n > 10 || step < 0 && n != 0 {
					t.Errorf("admitted %d right after the step", n)
				}
				w.advance(2_000_000)
				if n := drain(); n < 9 || n > 10 {
					t.Errorf("admitted %d two windows after the step, want a burst", n)
				}
			})
		}
	}
}

// Flooded at ten times the rate for 60 s: at most capacity + rate × time, and at least 99 % of it. In memory, which decides as
// Redis does (conformance_test.go), on a clock that does not wait. (limits F56, F58)
func TestFloodOfAMinute(t *testing.T) {
	for _, rule := range []*limit.Rule{
		{Capacity: 200, Refill: 100, PeriodSeconds: 1}, {Capacity: 1, Refill: 100, PeriodSeconds: 1},
		{Capacity: 17, Refill: 17, PeriodSeconds: 30}, {Capacity: 10, Refill: 10, PeriodSeconds: 60},
	} {
		w := newClock()
		memory := NewMemory(w.time)
		perSecond := float64(rule.Refill) / float64(rule.PeriodSeconds)
		step := int64(1e5 / perSecond)
		admitted := 0
		for w.now < epoch+60_000_000 {
			if mustTake(t, memory, one(rule, 1)).Outcome == limit.Allowed {
				admitted++
			}
			w.now += step
		}
		bound := float64(rule.Capacity) + 60*perSecond
		if got := float64(admitted); got > bound || got < 0.99*bound-1 {
			t.Errorf("%+v: admitted %v, bound %v", rule, got, bound)
		}
	}
}

type clock struct{ now int64 }

func newClock() *clock { return &clock{epoch} }

func (c *clock) time() time.Time { return time.UnixMicro(c.now) }

// A client that obeys Retry-After, alone, is admitted, at any rate that can be written. (limits D35, A4; request-path D34)
func TestRetryAfterIsTrue(t *testing.T) {
	w := newWorld(t)
	for _, rule := range []*limit.Rule{
		{Capacity: 1, Refill: 3, PeriodSeconds: 1}, {Capacity: 6, Refill: 3600, PeriodSeconds: 3600},
		{Capacity: 1, Refill: 1, PeriodSeconds: 600}, {Capacity: 5, Refill: 5, PeriodSeconds: 604_800},
		{Capacity: 1, Refill: 1, PeriodSeconds: limit.MaxPeriodSeconds}, {Capacity: limit.MaxTokens, Refill: limit.MaxRefillPerSecond, PeriodSeconds: 1},
		{Capacity: 7, PeriodSeconds: 1, Algorithm: limit.FixedWindow, Calendar: limit.CalendarDay},
		{Capacity: 7, PeriodSeconds: 1, Algorithm: limit.SlidingWindowLog, WindowSeconds: 60},
		{Capacity: 7, PeriodSeconds: 1, Algorithm: limit.SlidingWindowCounter, WindowSeconds: 60},
	} {
		w.reset()
		for round := range 20 {
			cost := int64(1)
			if round%3 == 0 {
				cost = rule.Capacity
			}
			d := mustTake(t, w.redis, one(rule, cost))
			if d.Outcome == limit.Allowed {
				w.advance(int64(round) * 137_001)
				continue
			}
			if d.RetryAfter > time.Microsecond {
				w.advance(d.RetryAfter.Microseconds() - max(2, d.RetryAfter.Microseconds()/1000))
				if early := mustTake(t, w.redis, one(rule, cost)); early.Outcome == limit.Allowed && rule.Capacity < 1000 {
					t.Errorf("%+v: admitted %v before its time", rule, d.RetryAfter)
				}
				w.advance(max(2, d.RetryAfter.Microseconds()/1000))
			} else {
				w.advance(1)
			}
			if again := mustTake(t, w.redis, one(rule, cost)); again.Outcome != limit.Allowed {
				t.Fatalf("%+v, cost %d: refused for %v, and again after that: %+v", rule, cost, d.RetryAfter, again)
			}
		}
	}
}

// Rates from 1 per 10 years on a capacity of 2^53 − 1 lose nothing to rounding, however often the bucket is written. (request-path D38)
func TestTinyRefillOfAHugeBucketIsNotLost(t *testing.T) {
	w := newWorld(t)
	w.reset()
	rule := &limit.Rule{Capacity: limit.MaxTokens, Refill: 1, PeriodSeconds: limit.MaxPeriodSeconds}
	mustTake(t, w.redis, one(rule, 1000))
	const writes = 1000
	for range writes {
		w.advance(limit.MaxPeriodSeconds * 1_000_000 / writes * 3)
		mustTake(t, w.redis, one(rule, 1))
	}
	want := int64(limit.MaxTokens - 1000 - writes + 3)
	tokens, err := strconv.ParseFloat(w.fields(orders)["tokens"], 64)
	if err != nil || int64(tokens) < want-1 || int64(tokens) > want {
		t.Errorf("tokens %v, %v; want %d", tokens, err, want)
	}
}

// A caller that gives up gets its own context's error, and the connection and the other callers live on.
func TestCallerThatGivesUp(t *testing.T) {
	server := testenv.StartRedis(t)
	client := connect(t, server.Addr)
	s := NewRedis(Options{Client: client, CallTimeout: 20 * time.Second})
	defer s.Close()
	rule := &limit.Rule{Capacity: 1000, Refill: 1, PeriodSeconds: 3600}
	mustTake(t, s, one(rule, 1))
	before := client.PoolStats()
	server.Pause()
	var wg sync.WaitGroup
	for range 100 {
		wg.Go(func() {
			ctx, cancel := context.WithTimeout(context.Background(), 5*time.Millisecond)
			defer cancel()
			if _, err := s.Take(ctx, one(rule, 1)); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("got %v, want the caller's deadline", err)
			}
		})
	}
	wg.Wait()
	server.Resume()
	d := mustTake(t, s, one(rule, 1))
	// Calls already under way were charged; those that were still waiting when their callers left were not.
	if d.Remaining < 1000-2-2*64 || d.Remaining > 998 {
		t.Errorf("remaining %d", d.Remaining)
	}
	if after := client.PoolStats(); after.StaleConns != before.StaleConns {
		t.Errorf("connections were torn down: %+v, before %+v", after, before)
	}
}
