package home

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"go.uber.org/goleak"

	"partidor.dev/partidor/gateway/internal/snapshot"
	"partidor.dev/partidor/shared/bucket"
	"partidor.dev/partidor/shared/limit"
	"partidor.dev/partidor/shared/testenv/natsenv"
)

var login = limit.Key{Tenant: "shop-a", Route: "login"}

// place is one region in a test: its Home, its rules and its store.
type place struct {
	*Home
	rules *snapshot.Holder
	store bucket.Store
}

// deployment starts regions with the given bases in one process, all serving.
func deployment(t *testing.T, conn *nats.Conn, rule *limit.Rule, bases map[string]limit.Share, budget time.Duration) map[string]*place {
	t.Helper()
	var regions []snapshot.Region
	for name, base := range bases {
		regions = append(regions, snapshot.Region{Name: name, Base: base, Floor: base / 20})
	}
	out := map[string]*place{}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, len(bases))
	for name := range bases {
		p := &place{rules: snapshot.NewHolder(name), store: bucket.NewMemory(nil)}
		if err := p.rules.Update(func(b *snapshot.Builder) error {
			b.SetRule(login.Tenant, login.Route, rule)
			return b.SetRegions(regions, limit.Revision{Number: 1})
		}); err != nil {
			t.Fatal(err)
		}
		p.rules.ConsumeAtHome()
		h, err := New(Options{Region: name, Instance: name + "-1", Conn: conn, Rules: p.rules, Store: p.store, Budget: budget, Trip: time.Millisecond, Deadline: time.Second})
		if err != nil {
			t.Fatal(err)
		}
		p.Home = h
		out[name] = p
		go func() { done <- h.Run(ctx) }()
	}
	t.Cleanup(func() {
		cancel()
		for range bases {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
	})
	for name := range bases { // wait until everybody serves
		for deadline := time.Now().Add(5 * time.Second); ; {
			_, err := conn.Request("partidor.v1.consume."+name, []byte("{}"), 20*time.Millisecond)
			if err != nil && !errors.Is(err, nats.ErrNoResponders) || time.Now().After(deadline) {
				break
			}
		}
	}
	return out
}

// take asks for one token as region's request path does.
func (p *place) take(t *testing.T) (limit.Decision, error) {
	t.Helper()
	return p.spend(t, 1)
}

// spend is take for a request of another cost.
func (p *place) spend(t *testing.T, cost int64) (limit.Decision, error) {
	t.Helper()
	m := p.rules.Load().Lookup(login.Tenant, login.Route)
	if m.Home == "" {
		t.Fatal("not a tiny limit")
	}
	lim := bucket.Limit{Key: login, Rule: m.Rule, Revision: m.Revision, Base: m.Base, Floor: m.Floor, Cost: cost}
	if !p.Away(login, m.Home) {
		return p.o.Store.Take(t.Context(), []bucket.Limit{lim})
	}
	decision, _, err := p.Take(t.Context(), time.Now(), &lim, m.Home)
	return decision, err
}

// Case L20: 5 a minute over three regions: five pass wherever they arrive, then nobody, with a true time to come back.
func TestFiveAMinuteOverThreeRegions(t *testing.T) {
	conn := natsenv.Start(t).Conn(t)
	_, _ = conn.Request("nobody", nil, time.Millisecond) // the connection's own goroutine for replies
	others := goleak.IgnoreCurrent()
	t.Cleanup(func() { goleak.VerifyNone(t, others) })
	rule := &limit.Rule{Capacity: 5, Refill: 5, PeriodSeconds: 60, Revision: limit.Revision{Number: 2}}
	d := deployment(t, conn, rule, map[string]limit.Share{"eu": 500_000, "us": 300_000, "ap": 200_000}, time.Second)
	admitted := 0
	for _, region := range []string{"us", "eu", "ap", "us", "us", "us", "eu", "ap"} {
		decision, err := d[region].take(t)
		if err != nil {
			t.Fatal(err)
		}
		if decision.Outcome == limit.Allowed {
			admitted++
			continue
		}
		if decision.RetryAfter < 10*time.Second || decision.RetryAfter > 12*time.Second {
			t.Errorf("%s is told to come back in %v, a token comes every 12 s", region, decision.RetryAfter)
		}
	}
	if admitted != 5 {
		t.Errorf("%d admitted, want 5", admitted)
	}
	// What was refused is remembered: the home is not asked again before the next token.
	before := d["us"].sequence.Load()
	if decision, err := d["us"].take(t); err != nil || decision.Outcome != limit.Refused || d["us"].sequence.Load() != before {
		t.Errorf("a remembered refusal: %+v, %v", decision, err)
	}
}

// Case L20, costs above 1: no region's part of 12 would ever hold 10. The rule declares that cost, so one region holds it all, and
// such a request passes from anywhere.
func TestDearRequestsOfASmallLimit(t *testing.T) {
	conn := natsenv.Start(t).Conn(t)
	rule := &limit.Rule{Capacity: 12, Refill: 12, PeriodSeconds: 60, MaxCost: 10, Revision: limit.Revision{Number: 2}}
	d := deployment(t, conn, rule, map[string]limit.Share{"eu": 400_000, "us": 300_000, "ap": 300_000}, time.Second)
	if decision, err := d["ap"].spend(t, 10); err != nil || decision.Outcome != limit.Allowed {
		t.Fatalf("the first request of cost 10: %+v, %v", decision, err)
	}
	decision, err := d["us"].spend(t, 10)
	if err != nil || decision.Outcome != limit.Refused || decision.RetryAfter < 35*time.Second || decision.RetryAfter > 40*time.Second {
		t.Errorf("the second, which lacks 8 tokens of 12 a minute: %+v, %v", decision, err)
	}
	if decision, err := d["eu"].spend(t, 2); err != nil || decision.Outcome != limit.Allowed {
		t.Errorf("what is left for a cheap one: %+v, %v", decision, err)
	}
}

func TestHomeHoldsForTheNextToken(t *testing.T) {
	conn := natsenv.Start(t).Conn(t)
	rule := &limit.Rule{Capacity: 1, Refill: 10, PeriodSeconds: 1, Revision: limit.Revision{Number: 2}}
	d := deployment(t, conn, rule, map[string]limit.Share{"eu": 600_000, "us": 400_000}, time.Second)
	began := time.Now()
	for i := range 4 {
		if decision, err := d["us"].take(t); err != nil || decision.Outcome != limit.Allowed {
			t.Fatalf("request %d: %+v, %v", i, decision, err)
		}
	}
	if took := time.Since(began); took < 290*time.Millisecond {
		t.Errorf("four of 10/s with a burst of 1 took %v", took)
	}
}

func TestNobodyAnswers(t *testing.T) {
	conn := natsenv.Start(t).Conn(t)
	rule := &limit.Rule{Capacity: 1, Refill: 1, PeriodSeconds: 1, Revision: limit.Revision{Number: 2}}
	d := deployment(t, conn, rule, map[string]limit.Share{"us": limit.Whole - 1, "eu": 1}, 50*time.Millisecond)
	if err := d["us"].o.Conn.Flush(); err != nil {
		t.Fatal(err)
	}
	lim := bucket.Limit{Key: login, Rule: rule, Cost: 1}
	began := time.Now()
	if _, _, err := d["us"].Take(t.Context(), began, &lim, "mars"); err == nil {
		t.Error("a region that does not exist has decided")
	}
	if took := time.Since(began); took > time.Second {
		t.Errorf("waited %v with a budget of 50 ms", took)
	}
}

// A region that has handed its rights on says so; the asker tries the next one and remembers who decides.
func TestMovedHomeIsFound(t *testing.T) {
	conn := natsenv.Start(t).Conn(t)
	rule := &limit.Rule{Capacity: 2, Refill: 1, PeriodSeconds: 1, Revision: limit.Revision{Number: 2}}
	d := deployment(t, conn, rule, map[string]limit.Share{"ap": 200_000, "eu": 500_000, "us": 300_000}, time.Second)
	// The rights sit in us, though eu was the first home: eu's store holds a share of 0, us's everything.
	for region, share := range map[string]limit.Share{"eu": 0, "us": limit.Whole} {
		if err := d[region].rules.Update(func(b *snapshot.Builder) error {
			b.MarkMoved(login, share)
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		d[region].o.Store = fixed{share}
	}
	if decision, err := d["ap"].take(t); err != nil || decision.Outcome != limit.Allowed {
		t.Errorf("asked from ap: %+v, %v", decision, err)
	}
	before := d["ap"].sequence.Load()
	if _, err := d["ap"].take(t); err != nil || d["ap"].sequence.Load() != before+1 {
		t.Errorf("the new home is not remembered: %d questions, %v", d["ap"].sequence.Load()-before, err)
	}
	if _, err := d["us"].take(t); !errors.Is(err, ErrMoved) {
		t.Errorf("asked from the new home itself: %v", err)
	}
	if decision, err := d["us"].take(t); err != nil || decision.Share != limit.Whole || decision.Source != limit.SourceRedis {
		t.Errorf("the new home does not decide itself: %+v, %v", decision, err)
	}
}

// fixed is a store that holds a share and always has a token if that is above 0.
type fixed struct{ share limit.Share }

func (f fixed) Take(_ context.Context, limits []bucket.Limit) (limit.Decision, error) {
	d := limit.Decision{Key: limits[0].Key, Rule: limits[0].Rule, Share: f.share, Source: limit.SourceRedis}
	if f.share == 0 {
		d.Outcome, d.RetryAfter = limit.Refused, time.Second
	}
	return d, nil
}
