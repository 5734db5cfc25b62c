package admit

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"partidor.dev/partidor/shared/bucket"
	"partidor.dev/partidor/shared/limit"
)

func TestRedisAwayIsDecidedLocally(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, logs := newFakeStore(), new(bytes.Buffer)
		a := newAdmitter(t, Options{
			Rules: rules(t, set("t1", "items", 10, 5)), Store: store, Instances: func() int { return 2 },
			Logger: slog.New(slog.NewTextHandler(logs, nil)),
		})
		for range 4 {
			admit(t, a)
		}
		store.set(errAway, 0)
		admitted := 0
		for range 200 {
			d := admit(t, a)
			if d.Source == limit.SourceRedis {
				t.Fatal("redis decided")
			}
			if !d.Degraded {
				t.Fatal("not marked as degraded")
			}
			if d.Outcome == limit.Allowed {
				admitted++
			}
		}
		if admitted != 3 {
			t.Errorf("admitted %d, want this instance's half of the 6 tokens last seen", admitted)
		}
		if !a.Degraded() || store.count() > 40 {
			t.Error("the breaker did not open")
		}
		store.set(nil, 0)
		for range 30 {
			time.Sleep(100 * time.Millisecond)
			admit(t, a)
		}
		if a.Degraded() {
			t.Error("still degraded")
		}
		if n := strings.Count(logs.String(), "\n"); n != 2 {
			t.Errorf("%d log lines, want one per change:\n%s", n, logs)
		}
	})
}

func TestOnError(t *testing.T) {
	for name, tc := range map[string]struct {
		policy limit.OnError
		want   limit.Outcome
	}{
		"local": {limit.OnErrorLocal, limit.Allowed},
		"allow": {limit.OnErrorAllow, limit.Allowed},
		"deny":  {limit.OnErrorDeny, limit.Unable},
	} {
		t.Run(name, func(t *testing.T) {
			store := newFakeStore()
			store.set(errAway, 0)
			a := newAdmitter(t, Options{Rules: rules(t, set("t1", "items", 10, 5, onError(tc.policy))), Store: store})
			d := admit(t, a)
			if d.Outcome != tc.want || d.Source != limit.SourceFallback || !d.Degraded || d.Rule == nil {
				t.Errorf("%+v", d)
			}
			// Case request-path 46: whoever is turned away is told when to come back.
			if d.Outcome != limit.Allowed && d.RetryAfter < time.Second {
				t.Errorf("retry after %v", d.RetryAfter)
			}
		})
	}
}

// allow lets everything pass, and still tells what is left and owes what the limit would have admitted.
func TestAllowKeepsCount(t *testing.T) {
	store := newFakeStore()
	store.set(errAway, 0)
	a := newAdmitter(t, Options{Rules: rules(t, set("t1", "items", 10, 1, onError(limit.OnErrorAllow))), Store: store})
	now := time.Now()
	for i := range 30 {
		d := a.Admit(t.Context(), now, Request{Tenant: "t1", Route: "items", Cost: 1})
		if d.Outcome != limit.Allowed || d.Remaining != int64(max(0, 9-i)) || d.RetryAfter != 0 {
			t.Fatalf("request %d: %v, %d left", i, d.Outcome, d.Remaining)
		}
	}
	if owed := a.local.Claim(now, limit.Key{Tenant: "t1", Route: "items"}); owed != 10 {
		t.Errorf("owes %d, want 10", owed)
	}
}

// Settling: what was admitted without Redis is taken from the bucket before the first take there.
func TestDebtsAreSettledFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newFakeStore()
		a := newAdmitter(t, Options{Rules: rules(t, set("t1", "items", 100, 1)), Store: store})
		for range 30 {
			admit(t, a)
		}
		store.set(errAway, 0)
		for range 50 {
			admit(t, a)
		}
		if !a.local.Owing() {
			t.Fatal("nothing is owed")
		}
		store.set(nil, 0)
		time.Sleep(400 * time.Millisecond)
		d := admit(t, a)
		if d.Source != limit.SourceRedis || d.Remaining != 100-30-50-1 {
			t.Errorf("by %v, %d left, want 19", d.Source, d.Remaining)
		}
		if a.local.Owing() {
			t.Error("still owing")
		}
	})
}

// The keys of tenants that do not come back are settled in the background.
func TestRunSettlesTheRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newFakeStore()
		a := newAdmitter(t, Options{Rules: rules(t, set("*", "items", 100, 1)), Store: store})
		stop := run(t, a)
		store.set(errAway, 0)
		tenants := []string{"t1", "t2", "t3"}
		for range 20 {
			for _, tenant := range tenants {
				a.Admit(t.Context(), time.Now(), Request{Tenant: tenant, Route: "items", Cost: 1})
			}
		}
		store.set(nil, 0)
		for range 10 {
			time.Sleep(100 * time.Millisecond)
			a.Admit(t.Context(), time.Now(), Request{Tenant: "probe", Route: "items", Cost: 1})
		}
		if a.local.Owing() {
			t.Error("debts are left")
		}
		other := newAdmitter(t, Options{Rules: a.rules, Store: store})
		for _, tenant := range tenants {
			d := other.Admit(t.Context(), time.Now(), Request{Tenant: tenant, Route: "items", Cost: 1})
			if d.Remaining < 79 || d.Remaining > 81 {
				t.Errorf("%s: another instance sees %d left, want about 80", tenant, d.Remaining)
			}
		}
		stop()
	})
}

// A debt whose settling got no answer is not settled again; one that certainly was not seen is kept.
func TestAnUncertainDebtIsLetGo(t *testing.T) {
	for name, tc := range map[string]struct {
		err             error
		left, unsettled int64
	}{
		"no answer": {errAway, 98, 1},
		"not sent":  {bucket.ErrBusy, 97, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := newFakeStore()
				a := newAdmitter(t, Options{Rules: rules(t, set("*", "items", 100, 1)), Store: store})
				calm := func() {
					store.set(nil, 0)
					a.Admit(t.Context(), time.Now(), Request{Tenant: "t2", Route: "items", Cost: 1})
				}
				store.set(errAway, 0)
				admit(t, a) // owes 1
				calm()
				store.set(tc.err, 0)
				admit(t, a) // carries that debt in vain, and makes another
				calm()
				if d := admit(t, a); d.Remaining != tc.left {
					t.Errorf("%d left, want %d", d.Remaining, tc.left)
				}
				if n := a.metrics.unknown.Load(); n != tc.unsettled {
					t.Errorf("%d tokens counted as unsettled, want %d", n, tc.unsettled)
				}
			})
		})
	}
}

func TestFencedFallbackUsesTheFloor(t *testing.T) {
	store := newFakeStore()
	store.set(errAway, 0)
	for name, o := range map[string]Options{
		"fenced": {Fenced: func() bool { return true }},
		"strict": {Strict: true},
	} {
		t.Run(name, func(t *testing.T) {
			o.Rules, o.Store = rules(t, set("t1", "items", 100, 1)), store
			a := newAdmitter(t, o)
			admitted := 0
			for range 50 {
				if admit(t, a).Outcome == limit.Allowed {
					admitted++
				}
			}
			if admitted != 5 {
				t.Errorf("admitted %d, want the floor's 5 of 100", admitted)
			}
		})
	}
}

// run starts the background part; stop ends it and waits.
func run(t *testing.T, a *Admitter) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- a.Run(ctx) }()
	return func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("run: %v", err)
		}
	}
}
