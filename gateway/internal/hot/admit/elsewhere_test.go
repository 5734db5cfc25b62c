package admit

import (
	"context"
	"errors"
	"testing"
	"time"

	"partidor.dev/partidor/gateway/internal/snapshot"
	"partidor.dev/partidor/shared/bucket"
	"partidor.dev/partidor/shared/limit"
)

// fakeElsewhere decides every key that is not at home in eu from a bucket of its own.
type fakeElsewhere struct {
	store bucket.Store
	fail  error
	asked []bucket.Limit
	left  []limit.Key
	lost  bool // what is given back
}

func (e *fakeElsewhere) Away(_ limit.Key, first string) bool { return first != "eu" }
func (e *fakeElsewhere) Left(k limit.Key)                    { e.left = append(e.left, k) }

func (e *fakeElsewhere) Take(ctx context.Context, _ time.Time, lim *bucket.Limit, _ string) (limit.Decision, func(), error) {
	e.asked = append(e.asked, *lim)
	if e.fail != nil {
		return limit.Decision{}, nil, e.fail
	}
	at := *lim
	at.Base = limit.Whole
	d, err := e.store.Take(ctx, []bucket.Limit{at})
	d.Source = limit.SourceHome
	if err != nil || d.Outcome != limit.Allowed {
		return d, nil, err
	}
	return d, func() {
		if !e.lost {
			at.Cost, at.Owed = 0, -at.Cost
			_, _ = e.store.Take(ctx, []bucket.Limit{at})
		}
	}, nil
}

func (e *fakeElsewhere) Refused(time.Time, *bucket.Limit) (limit.Decision, bool) {
	return limit.Decision{}, false
}

// level is what a bucket of e holds, in whole tokens.
func (e *fakeElsewhere) level(t *testing.T, a *Admitter, route string) int64 {
	t.Helper()
	m := a.rules.Load().Lookup("t1", route)
	d, err := e.store.Take(t.Context(), []bucket.Limit{{Key: limit.Key{Tenant: "t1", Route: route}, Rule: m.Rule, Revision: m.Revision, Base: limit.Whole}})
	if err != nil {
		t.Fatal(err)
	}
	return d.Remaining
}

// Two tiny limits, both at home elsewhere: a refusal by either charges neither. What is given back and lost is lost, never
// doubled.
func TestRefusalAtOneHomeGivesBackToTheOther(t *testing.T) {
	for name, c := range map[string]struct {
		route, tenant int64 // capacities
		lost          bool
		want          int64 // tokens of the wider limit after one admission and four refusals
	}{
		"the tenant's refuses":       {3, 1, false, 2},
		"the route's refuses":        {1, 3, false, 2},
		"the tenant's, way back cut": {3, 1, true, 0},
	} {
		t.Run(name, func(t *testing.T) {
			there := &fakeElsewhere{store: bucket.NewMemory(nil), lost: c.lost}
			a := newAdmitter(t, Options{Store: newFakeStore(), Elsewhere: there, Rules: atHome(t, twoRegions(t, "us"),
				set("t1", "items", c.route, 1, hourly), set("t1", limit.TenantRoute, c.tenant, 1, hourly))})
			admitted := 0
			for range 5 {
				if admit(t, a).Outcome == limit.Allowed {
					admitted++
				}
			}
			wider := "items"
			if c.tenant > c.route {
				wider = limit.TenantRoute
			}
			if got := there.level(t, a, wider); admitted != 1 || got != c.want {
				t.Errorf("%d admitted, want 1; %d tokens left of the wider limit, want %d", admitted, got, c.want)
			}
		})
	}
}

// twoRegions declares eu and us; the first home is us where home says so.
func twoRegions(t *testing.T, home string) func(*snapshot.Builder) {
	t.Helper()
	return func(b *snapshot.Builder) {
		eu := limit.Share(600_000)
		if home == "us" {
			eu = 400_000
		}
		err := b.SetRegions([]snapshot.Region{{Name: "eu", Base: eu, Floor: 30_000}, {Name: "us", Base: limit.Whole - eu, Floor: 20_000}}, limit.Revision{Number: 1})
		if err != nil {
			t.Fatal(err)
		}
	}
}

func TestTinyLimitIsConsumedAtItsHome(t *testing.T) {
	there := &fakeElsewhere{store: bucket.NewMemory(nil)}
	here := newFakeStore()
	a := newAdmitter(t, Options{Store: here, Elsewhere: there, Rules: atHome(t, twoRegions(t, "us"),
		set("t", "tiny", 1, 1), set("t", "wide", 1000, 1000))})
	at := func(route string) limit.Decision {
		return a.Admit(t.Context(), time.Now(), Request{Tenant: "t", Route: route, Cost: 1})
	}
	if d := at("tiny"); d.Outcome != limit.Allowed || d.Source != limit.SourceHome {
		t.Errorf("first request: %+v", d)
	}
	if d := at("tiny"); d.Outcome != limit.Refused || d.RetryAfter <= 0 || d.Degraded {
		t.Errorf("second request: %+v", d)
	}
	if here.calls != 0 {
		t.Errorf("the own store was asked %d times", here.calls)
	}
	if d := at("wide"); d.Outcome != limit.Allowed || d.Source == limit.SourceHome {
		t.Errorf("a limit that is divided: %+v", d)
	}
	if len(there.asked) != 2 {
		t.Errorf("the home was asked %d times, want 2", len(there.asked))
	}
}

func TestTinyLimitAtHomeHereHoldsEverything(t *testing.T) {
	there := &fakeElsewhere{}
	here := newFakeStore()
	a := newAdmitter(t, Options{Store: here, Elsewhere: there, Rules: atHome(t, twoRegions(t, "eu"), set("t1", "items", 3, 1))})
	for i := range 3 {
		if d := admit(t, a); d.Outcome != limit.Allowed {
			t.Errorf("request %d of a limit of 3: %+v", i, d)
		}
	}
	if lim := here.asked[0]; lim.Base != limit.Whole || lim.Floor != 0 {
		t.Errorf("decided with base %d and floor %d", lim.Base, lim.Floor)
	}
	if len(there.asked) != 0 {
		t.Error("somebody else was asked")
	}
}

// Where the home cannot be asked, on_error decides, and nothing is admitted from a share that this region does not hold.
func TestHomeThatDoesNotAnswer(t *testing.T) {
	for policy, want := range map[limit.OnError]limit.Outcome{
		limit.OnErrorLocal: limit.Unable, limit.OnErrorDeny: limit.Unable, limit.OnErrorAllow: limit.Allowed,
	} {
		there := &fakeElsewhere{fail: errors.New("no answer")}
		a := newAdmitter(t, Options{Store: newFakeStore(), Elsewhere: there, Rules: atHome(t, twoRegions(t, "us"), set("t1", "items", 1, 1, onError(policy)))})
		d := admit(t, a)
		if d.Outcome != want || !d.Degraded || (want == limit.Unable) != (d.RetryAfter > 0) {
			t.Errorf("on_error %s: %+v", policy, d)
		}
	}
}

// With a limit here and one at home elsewhere, a refusal there gives back what was taken here.
func TestRefusalAtHomeGivesBack(t *testing.T) {
	there := &fakeElsewhere{store: bucket.NewMemory(nil)}
	here := newFakeStore()
	a := newAdmitter(t, Options{Store: here, Elsewhere: there, Rules: atHome(t, twoRegions(t, "us"),
		set("t1", "items", 1, 1), set("t1", limit.TenantRoute, 1000, 1))})
	if d := admit(t, a); d.Outcome != limit.Allowed {
		t.Fatalf("first: %+v", d)
	}
	for range 5 {
		if d := admit(t, a); d.Outcome != limit.Refused || d.Key.Route != "items" {
			t.Fatalf("then: %+v", d)
		}
	}
	probe, err := here.Take(t.Context(), []bucket.Limit{{
		Key: limit.Key{Tenant: "t1", Route: limit.TenantRoute}, Base: 400_000, Revision: limit.Revision{Number: 2},
		Rule: &limit.Rule{Capacity: 1000, Refill: 1, PeriodSeconds: 1},
	}})
	if err != nil || probe.Tokens < 399 {
		t.Errorf("the tenant's bucket here holds %.1f of 400 tokens after one admission (%v)", probe.Tokens, err)
	}
}

// What the fallback admitted was never taken from Redis, so it does not go back there.
func TestRefusalAtHomeGivesBackToTheFallback(t *testing.T) {
	there := &fakeElsewhere{store: bucket.NewMemory(nil)}
	here := newFakeStore()
	here.set(errAway, 0)
	a := newAdmitter(t, Options{Store: here, Elsewhere: there, Rules: atHome(t, twoRegions(t, "us"),
		set("t1", "items", 1, 1), set("t1", limit.TenantRoute, 1000, 1))})
	for range 50 {
		admit(t, a)
	}
	for _, l := range here.asked {
		if l.Owed < 0 {
			t.Fatalf("%d tokens were given back to redis", -l.Owed)
		}
	}
	if owed := a.local.Claim(time.Now(), limit.Key{Tenant: "t1", Route: limit.TenantRoute}); owed > 1 {
		t.Errorf("%d owed after one admission", owed)
	}
}

// atHome is rules under which tiny limits are consumed at home.
func atHome(t *testing.T, edits ...func(*snapshot.Builder)) *snapshot.Holder {
	t.Helper()
	h := rules(t, edits...)
	h.ConsumeAtHome()
	return h
}

// A shadow rule is judged by itself: a tiny one admits what it would as a limit, although nobody asks its home, and a tiny
// enforced one takes nothing from the shadow beside it.
func TestShadowIsJudgedByItself(t *testing.T) {
	for name, tc := range map[string]struct {
		edits []func(*snapshot.Builder)
		want  int64 // refusals of 50 requests
	}{
		"tiny alone":         {[]func(*snapshot.Builder){set("t", "r", 1, 1, mode(limit.Shadow), hourly)}, 49},
		"tiny beside wide":   {[]func(*snapshot.Builder){set("t", "r", 1, 1, mode(limit.Shadow), hourly), set("*", "r", 1000, 1000)}, 49},
		"wide beside tiny":   {[]func(*snapshot.Builder){set("t", "r", 100, 1, mode(limit.Shadow), hourly), set("*", "r", 1, 1)}, 10},
		"wide, after a move": {[]func(*snapshot.Builder){set("t", "r", 100, 1, mode(limit.Shadow), hourly), set("*", "r", 1000, 1), moved("t", "r", 0)}, 10},
	} {
		t.Run(name, func(t *testing.T) {
			for _, home := range []string{"eu", "us"} {
				there := &fakeElsewhere{store: bucket.NewMemory(nil)}
				a := newAdmitter(t, Options{Store: newFakeStore(), Elsewhere: there, Rules: atHome(t, append(tc.edits, twoRegions(t, home))...)})
				for range 50 {
					a.Admit(t.Context(), time.Now(), Request{Tenant: "t", Route: "r", Cost: 1})
				}
				want := tc.want
				if want == 10 && home == "eu" {
					want = 0 // eu has 60 of 100 tokens, else 40
				}
				if n := a.metrics.shadows[limit.Refused].Load(); n != want {
					t.Errorf("home %s: %d would have been refused, want %d", home, n, want)
				}
			}
		})
	}
}

func moved(tenant, route string, base limit.Share) func(*snapshot.Builder) {
	return func(b *snapshot.Builder) { b.MarkMoved(limit.Key{Tenant: tenant, Route: route}, base) }
}

func hourly(r *limit.Rule) { r.PeriodSeconds = 3600 }

// Case limits 20 for windows: one a day over two regions is one a day, wherever it is asked for, and not none.
func TestTinyWindowIsConsumedAtItsHome(t *testing.T) {
	for _, home := range []string{"eu", "us"} {
		for _, algorithm := range []limit.Algorithm{limit.FixedWindow, limit.SlidingWindowLog, limit.SlidingWindowCounter} {
			there := &fakeElsewhere{store: bucket.NewMemory(nil)}
			a := newAdmitter(t, Options{Store: newFakeStore(), Elsewhere: there, Rules: atHome(t, twoRegions(t, home),
				set("t1", "items", 1, 0, func(r *limit.Rule) { r.Algorithm, r.WindowSeconds = algorithm, 86_400 }))})
			if d := admit(t, a); d.Outcome != limit.Allowed {
				t.Errorf("%s, home %s: the first is %v", algorithm, home, d.Outcome)
			}
			if d := admit(t, a); d.Outcome != limit.Refused || d.RetryAfter <= 0 {
				t.Errorf("%s, home %s: the second is %v, retry after %v", algorithm, home, d.Outcome, d.RetryAfter)
			}
			if away := home == "us"; away != (len(there.asked) > 0) {
				t.Errorf("%s, home %s: the home was asked %d times", algorithm, home, len(there.asked))
			}
		}
	}
}
