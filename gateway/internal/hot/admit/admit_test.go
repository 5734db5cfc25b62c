package admit

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"partidor.dev/partidor/gateway/internal/snapshot"
	"partidor.dev/partidor/shared/bucket"
	"partidor.dev/partidor/shared/limit"
)

// rules is a snapshot under construction for tests: one region, eu, that has everything.
func rules(t testing.TB, edits ...func(*snapshot.Builder)) *snapshot.Holder {
	t.Helper()
	h := snapshot.NewHolder("eu")
	edit(t, h, append([]func(*snapshot.Builder){func(b *snapshot.Builder) {
		if err := b.SetRegions([]snapshot.Region{{Name: "eu", Base: limit.Whole, Floor: limit.Whole / 20}}, limit.Revision{Number: 1}); err != nil {
			t.Fatal(err)
		}
	}}, edits...)...)
	return h
}

func edit(t testing.TB, h *snapshot.Holder, edits ...func(*snapshot.Builder)) {
	t.Helper()
	err := h.Update(func(b *snapshot.Builder) error {
		for _, e := range edits {
			e(b)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// set is one rule of a tenant's route; change completes it.
func set(tenant, route string, capacity, refill int64, change ...func(*limit.Rule)) func(*snapshot.Builder) {
	r := &limit.Rule{Capacity: capacity, Refill: refill, PeriodSeconds: 1, Revision: limit.Revision{Number: 2}}
	for _, c := range change {
		c(r)
	}
	return func(b *snapshot.Builder) { b.SetRule(tenant, route, r) }
}

func mode(m limit.Mode) func(*limit.Rule)       { return func(r *limit.Rule) { r.Mode = m } }
func onError(o limit.OnError) func(*limit.Rule) { return func(r *limit.Rule) { r.OnError = o } }
func prefetch(r *limit.Rule)                    { r.Prefetch = true }
func revision(n int64) func(*limit.Rule) {
	return func(r *limit.Rule) { r.Revision = limit.Revision{Number: n} }
}

// fakeStore is a memory store that counts calls and can fail, hang or be slow.
type fakeStore struct {
	bucket.Store

	mu     sync.Mutex
	calls  int
	asked  []bucket.Limit
	fail   error
	delay  time.Duration
	before func()
}

func newFakeStore() *fakeStore { return &fakeStore{Store: bucket.NewMemory(nil)} }

func (s *fakeStore) Take(ctx context.Context, limits []bucket.Limit) (limit.Decision, error) {
	s.mu.Lock()
	s.calls++
	s.asked = append(s.asked, limits...)
	fail, delay, before := s.fail, s.delay, s.before
	s.mu.Unlock()
	if before != nil {
		before()
	}
	if delay > 0 {
		select {
		case <-time.After(delay):
		case <-ctx.Done():
			return limit.Decision{}, ctx.Err()
		}
	}
	if fail != nil {
		return limit.Decision{}, fail
	}
	d, err := s.Store.Take(ctx, limits)
	d.Source = limit.SourceRedis
	return d, err
}

func (s *fakeStore) set(fail error, delay time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fail, s.delay = fail, delay
}

// count is the number of calls since it was last asked.
func (s *fakeStore) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.calls
	s.calls = 0
	return n
}

// counts is a Counter that adds up.
type counts struct {
	mu       sync.Mutex
	admitted map[limit.Key]int64
	refused  map[limit.Key]int64
}

func newCounts() *counts {
	return &counts{admitted: make(map[limit.Key]int64), refused: make(map[limit.Key]int64)}
}

func (c *counts) Count(key limit.Key, cost int64, allowed bool, _ limit.Decision) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if allowed {
		c.admitted[key] += cost
	} else {
		c.refused[key] += cost
	}
}

func newAdmitter(t testing.TB, o Options) *Admitter {
	t.Helper()
	a, err := New(time.Now(), o)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// admit sends one request of t1 to items.
func admit(t testing.TB, a *Admitter) limit.Decision {
	t.Helper()
	return a.Admit(t.Context(), time.Now(), Request{Tenant: "t1", Route: "items", Cost: 1})
}

var errAway = errors.New("connection refused")

func TestEnforcesTheRule(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, usage := newFakeStore(), newCounts()
		a := newAdmitter(t, Options{Rules: rules(t, set("t1", "items", 2, 1)), Store: store, Counter: usage, DeniedCache: -1})
		for i, want := range []struct {
			outcome   limit.Outcome
			remaining int64
		}{{limit.Allowed, 1}, {limit.Allowed, 0}, {limit.Refused, 0}} {
			d := admit(t, a)
			if d.Outcome != want.outcome || d.Remaining != want.remaining || d.Source != limit.SourceRedis {
				t.Errorf("request %d: %v, %d left, by %v", i, d.Outcome, d.Remaining, d.Source)
			}
			if d.Outcome == limit.Refused && d.RetryAfter != time.Second {
				t.Errorf("retry after %v, want 1s", d.RetryAfter)
			}
		}
		k := limit.Key{Tenant: "t1", Route: "items"}
		if usage.admitted[k] != 2 || usage.refused[k] != 1 {
			t.Errorf("counted %d admitted, %d refused", usage.admitted[k], usage.refused[k])
		}
	})
}

func TestNeedsRulesAndStore(t *testing.T) {
	if _, err := New(time.Now(), Options{}); err == nil {
		t.Error("an admitter without rules and store was made")
	}
}

// Case limits 43: the route's bucket is empty, the tenant's full: refused, the strictest speaks, the tenant is not charged.
func TestRouteAndTenantTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAdmitter(t, Options{
			Rules: rules(t, set("t1", "items", 2, 1), set("t1", limit.TenantRoute, 5, 1)), Store: newFakeStore(), DeniedCache: -1,
		})
		for range 10 {
			admit(t, a)
		}
		d := admit(t, a)
		if d.Outcome != limit.Refused || d.Key.Route != "items" {
			t.Errorf("%v by %v, want refused by the route", d.Outcome, d.Key)
		}
		// Three tokens of the tenant's five are left for its other routes.
		admitted := 0
		for range 10 {
			d = a.Admit(t.Context(), time.Now(), Request{Tenant: "t1", Route: "other", Cost: 1})
			if d.Outcome == limit.Allowed {
				admitted++
			}
		}
		if admitted != 3 || d.Key.Route != limit.TenantRoute {
			t.Errorf("%d more admitted, last word by %v", admitted, d.Key)
		}
	})
}

func TestModes(t *testing.T) {
	for name, tc := range map[string]struct {
		edits []func(*snapshot.Builder)
		cost  int64
		want  limit.Outcome
		by    limit.Source
		calls int
	}{
		"block":                      {[]func(*snapshot.Builder){set("t1", "items", 9, 9, mode(limit.Block))}, 1, limit.Blocked, limit.SourceRule, 0},
		"block at cost 0":            {[]func(*snapshot.Builder){set("t1", "items", 9, 9, mode(limit.Block))}, 0, limit.Blocked, limit.SourceRule, 0},
		"tenant blocked":             {[]func(*snapshot.Builder){set("t1", limit.TenantRoute, 9, 9, mode(limit.Block))}, 1, limit.Blocked, limit.SourceRule, 0},
		"unlimited":                  {[]func(*snapshot.Builder){set("t1", "items", 9, 9, mode(limit.Unlimited))}, 1, limit.Allowed, limit.SourceRule, 0},
		"unlimited route of limited": {[]func(*snapshot.Builder){set("t1", "items", 9, 9, mode(limit.Unlimited)), set("t1", limit.TenantRoute, 9, 9)}, 1, limit.Allowed, limit.SourceRedis, 1},
		"cost 0":                     {[]func(*snapshot.Builder){set("t1", "items", 9, 9)}, 0, limit.Allowed, limit.SourceRule, 0},
		"shadow":                     {[]func(*snapshot.Builder){set("t1", "items", 9, 9, mode(limit.Shadow))}, 1, limit.Allowed, limit.SourceRule, 1},
		"no rule: the default":       {nil, 1, limit.Allowed, limit.SourceRedis, 1},
		"too large":                  {[]func(*snapshot.Builder){set("t1", "items", 9, 9)}, 10, limit.TooLarge, limit.SourceRedis, 1},
	} {
		t.Run(name, func(t *testing.T) {
			store := newFakeStore()
			a := newAdmitter(t, Options{Rules: rules(t, tc.edits...), Store: store})
			d := a.Admit(t.Context(), time.Now(), Request{Tenant: "t1", Route: "items", Cost: tc.cost})
			if d.Outcome != tc.want || d.Source != tc.by || store.count() != tc.calls {
				t.Errorf("%v by %v, want %v by %v with %d calls", d.Outcome, d.Source, tc.want, tc.by, tc.calls)
			}
			if d.Rule == nil {
				t.Error("no rule in the decision")
			}
		})
	}
}

// Case request-path 112: a shadow rule of 1/s beside an enforced one of 100/s for the same key: everything passes, 49 of 50 are
// counted, the enforced bucket is not touched by the shadow, and the decision speaks of the enforced rule.
func TestShadowOnlyCounts(t *testing.T) {
	for name, beside := range map[string]func(*snapshot.Builder){
		"the tenant's limit": set("t1", limit.TenantRoute, 100, 100),
		"everybody's rule":   set("*", "items", 100, 100),
		"nothing":            func(*snapshot.Builder) {},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := newFakeStore()
				a := newAdmitter(t, Options{Rules: rules(t, set("t1", "items", 1, 1, mode(limit.Shadow)), beside), Store: store})
				for i := range 50 {
					d := admit(t, a)
					if d.Outcome != limit.Allowed {
						t.Fatalf("%v by %v", d.Outcome, d.Key)
					}
					if name != "nothing" && (d.Rule.Capacity != 100 || d.Remaining != int64(99-i)) {
						t.Fatalf("request %d: %d of %d left", i, d.Remaining, d.Rule.Capacity)
					}
				}
				if n := a.metrics.shadows[limit.Refused].Load(); n != 49 {
					t.Errorf("%d would have been refused, want 49", n)
				}
			})
		})
	}
}

func TestKillSwitchEnforcesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		usage := newCounts()
		h := rules(t, set("t1", "items", 1, 1), func(b *snapshot.Builder) { b.SetShadow(true) })
		a := newAdmitter(t, Options{Rules: h, Store: newFakeStore(), Counter: usage})
		for range 10 {
			if d := admit(t, a); d.Outcome != limit.Allowed || d.RetryAfter != 0 {
				t.Fatalf("%v", d.Outcome)
			}
		}
		if n := usage.refused[limit.Key{Tenant: "t1", Route: "items"}]; n != 9 {
			t.Errorf("%d counted as refused, want 9", n)
		}
		if n := a.metrics.spares[limit.Refused].Load(); n != 9 {
			t.Errorf("%d spared, want 9", n)
		}
	})
}

// Case request-path 28: the client's context ends; the decision goes on and is charged, and nothing fails.
func TestADecisionOutlivesItsClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newFakeStore()
		store.set(nil, 2*time.Millisecond)
		a := newAdmitter(t, Options{Rules: rules(t, set("t1", "items", 100, 1)), Store: store})
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		for range 50 {
			if d := a.Admit(ctx, time.Now(), Request{Tenant: "t1", Route: "items", Cost: 1}); d.Source != limit.SourceRedis {
				t.Fatalf("decided by %v", d.Source)
			}
		}
		if a.Degraded() {
			t.Error("clients that hang up opened the breaker")
		}
	})
}
