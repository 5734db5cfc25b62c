package admit

import (
	"testing"
	"testing/synctest"
	"time"

	"partidor.dev/partidor/shared/bucket"
	"partidor.dev/partidor/shared/limit"
)

// Case request-path 77: a hot tenant at 50,000/s with a limit of 100/s. Refusals are answered from memory until the next
// token is due; no grant is lost.
func TestHotTenantIsRefusedFromMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newFakeStore()
		a := newAdmitter(t, Options{Rules: rules(t, set("t1", "items", 200, 100)), Store: store})
		admitted := 0
		for range 50_000 {
			time.Sleep(20 * time.Microsecond)
			if admit(t, a).Outcome == limit.Allowed {
				admitted++
			}
		}
		if admitted < 298 || admitted > 301 {
			t.Errorf("admitted %d in 1 s, want 300", admitted)
		}
		if n := store.count(); n > 200+100+5 {
			t.Errorf("%d calls to redis, want one per token", n)
		}
	})
}

func TestARefusalIsTrueAndShort(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newFakeStore()
		a := newAdmitter(t, Options{Rules: rules(t, set("t1", "items", 1, 1, func(r *limit.Rule) { r.PeriodSeconds = 10 })), Store: store})
		admit(t, a)
		admit(t, a)
		store.count()
		for range 9 { // the first answer, that nothing is left, is remembered too
			time.Sleep(10 * time.Millisecond)
			d := admit(t, a)
			if d.Source != limit.SourceDeniedCache || d.Outcome != limit.Refused || d.Key.Tenant != "t1" || d.Rule == nil {
				t.Fatalf("%+v", d)
			}
		}
		time.Sleep(10 * time.Millisecond)
		d := admit(t, a)
		if d.Source != limit.SourceRedis || store.count() != 1 {
			t.Errorf("after 100 ms still by %v", d.Source)
		}
		time.Sleep(50 * time.Millisecond)
		if d := admit(t, a); d.RetryAfter != 10*time.Second-150*time.Millisecond {
			t.Errorf("retry after %v", d.RetryAfter)
		}
	})
}

func TestWhatDropsARefusal(t *testing.T) {
	k := limit.Key{Tenant: "t1", Route: "items"}
	for name, drop := range map[string]func(t *testing.T, a *Admitter){
		"credit":       func(_ *testing.T, a *Admitter) { a.Credited(time.Now(), k) },
		"new revision": func(t *testing.T, a *Admitter) { edit(t, a.rules, set("t1", "items", 5, 1, revision(9))) },
		"its time":     func(*testing.T, *Admitter) { time.Sleep(100 * time.Millisecond) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := newAdmitter(t, Options{Rules: rules(t, set("t1", "items", 1, 1)), Store: newFakeStore()})
				admit(t, a)
				admit(t, a)
				if d := admit(t, a); d.Source != limit.SourceDeniedCache {
					t.Fatalf("by %v", d.Source)
				}
				drop(t, a)
				if d := admit(t, a); d.Source != limit.SourceRedis {
					t.Errorf("by %v", d.Source)
				}
			})
		})
	}
}

// The news of a gift may come before the gift: until it is there, refusals are not remembered.
func TestNewsOfAGiftBeforeTheGift(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newFakeStore()
		k := limit.Key{Tenant: "t1", Route: "items"}
		a := newAdmitter(t, Options{Rules: rules(t, set("t1", "items", 1, 1)), Store: store})
		admit(t, a)
		a.Credited(time.Now(), k)
		if d := admit(t, a); d.Outcome != limit.Refused || d.Source != limit.SourceRedis {
			t.Fatalf("%v by %v", d.Outcome, d.Source)
		}
		time.Sleep(5 * time.Millisecond)
		gift := bucket.Limit{Key: k, Rule: a.rules.Load().Lookup("t1", "items").Rule, Base: limit.Whole, Owed: -1}
		if _, err := store.Take(t.Context(), []bucket.Limit{gift}); err != nil {
			t.Fatal(err)
		}
		if d := admit(t, a); d.Outcome != limit.Allowed {
			t.Errorf("%v by %v after the gift", d.Outcome, d.Source)
		}
	})
}

func TestARefusalOfALargeCostLetsSmallOnesAsk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAdmitter(t, Options{Rules: rules(t, set("t1", "items", 10, 1)), Store: newFakeStore()})
		ask := func(cost int64) limit.Decision {
			return a.Admit(t.Context(), time.Now(), Request{Tenant: "t1", Route: "items", Cost: cost})
		}
		ask(7)
		if d := ask(5); d.Outcome != limit.Refused {
			t.Fatalf("%v", d.Outcome)
		}
		if d := ask(6); d.Source != limit.SourceDeniedCache {
			t.Errorf("cost 6 after 5 was refused: by %v", d.Source)
		}
		if d := ask(3); d.Outcome != limit.Allowed {
			t.Errorf("cost 3 of 3: %v", d.Outcome)
		}
	})
}

// The tenant's own limit refuses whatever the route.
func TestATenantsRefusalCoversItsRoutes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newFakeStore()
		a := newAdmitter(t, Options{Rules: rules(t, set("t1", limit.TenantRoute, 2, 1)), Store: store})
		for range 3 {
			admit(t, a)
		}
		store.count()
		d := a.Admit(t.Context(), time.Now(), Request{Tenant: "t1", Route: "other", Cost: 1})
		if d.Source != limit.SourceDeniedCache || d.Key.Route != limit.TenantRoute || store.count() != 0 {
			t.Errorf("by %v, %v", d.Source, d.Key)
		}
	})
}

func TestARefusalCostsNothing(t *testing.T) {
	a := newAdmitter(t, Options{Rules: rules(t, set("t1", "items", 1, 1, func(r *limit.Rule) { r.PeriodSeconds = 3600 })), Store: newFakeStore()})
	ctx, now, req := t.Context(), time.Now(), Request{Tenant: "t1", Route: "items", Cost: 1}
	a.Admit(ctx, now, req)
	a.Admit(ctx, now, req)
	wantNoAllocs(t, func() {
		if d := a.Admit(ctx, now, req); d.Source != limit.SourceDeniedCache {
			t.Fatalf("by %v", d.Source)
		}
	})
}
