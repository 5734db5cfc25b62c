package home

import (
	"fmt"
	"testing"
	"time"

	"partidor.dev/partidor/gateway/internal/snapshot"
	"partidor.dev/partidor/shared/bucket"
	"partidor.dev/partidor/shared/limit"
	"partidor.dev/partidor/shared/testenv"
	"partidor.dev/partidor/shared/testenv/natsenv"
	"partidor.dev/partidor/shared/wire"
)

// level is what a region's bucket of login holds, in whole tokens.
func (p *place) level(t *testing.T) int64 {
	t.Helper()
	m := p.rules.Load().Lookup(login.Tenant, login.Route)
	d, err := p.store.Take(t.Context(), []bucket.Limit{{Key: login, Rule: m.Rule, Revision: m.Revision, Base: limit.Whole}})
	if err != nil {
		t.Fatal(err)
	}
	return d.Remaining
}

// What a home admitted and is not used comes back once, however often it is said, and only from who was admitted.
func TestGivenBackOnce(t *testing.T) {
	conn := natsenv.Start(t).Conn(t)
	rule := &limit.Rule{Capacity: 3, Refill: 1, PeriodSeconds: 86_400, Revision: limit.Revision{Number: 2}}
	d := deployment(t, conn, rule, map[string]limit.Share{"eu": 600_000, "us": 400_000}, 5*time.Second)
	us, eu := d["us"], d["eu"]
	m := us.rules.Load().Lookup(login.Tenant, login.Route)
	take := func() func() {
		t.Helper()
		lim := bucket.Limit{Key: login, Rule: m.Rule, Revision: m.Revision, Base: m.Base, Floor: m.Floor, Cost: 1}
		decision, back, err := us.Take(t.Context(), time.Now(), &lim, m.Home)
		if err != nil || decision.Outcome != limit.Allowed || back == nil {
			t.Fatalf("%+v, %v", decision, err)
		}
		return back
	}
	first, second := take(), take()
	_ = second // lost on the way: its token is lost
	for range 3 {
		first()
	}
	// The last of them has been heard once another message behind it has been.
	forged := &wire.Return{Header: us.header(), To: "eu", ToInstance: "eu-1", ToStarted: eu.started.UnixMilli(), Reply: 1 << 40}
	data, err := wire.Encode(forged)
	if err != nil {
		t.Fatal(err)
	}
	if err := conn.Publish(wire.SubjectReturn("eu"), data); err != nil {
		t.Fatal(err)
	}
	testenv.Eventually(t, 20*time.Second, func() error {
		if eu.level(t) < 2 {
			return fmt.Errorf("%d tokens at the home", eu.level(t))
		}
		return nil
	})
	take()
	if got := eu.level(t); got != 1 {
		t.Errorf("%d tokens left of 3 after three admissions of which one came back, want 1", got)
	}
}

// The home goes by the mode of the rule that it knows: what is only counted there charges nobody, and what blocks admits nobody.
func TestModesAtTheHome(t *testing.T) {
	conn := natsenv.Start(t).Conn(t)
	rule := &limit.Rule{Capacity: 1, Refill: 1, PeriodSeconds: 86_400, Revision: limit.Revision{Number: 2}}
	for _, c := range []struct {
		mode     limit.Mode
		revision int64 // at the home; the asker enforces revision 2
		want     limit.Outcome
		err      error
		left     int64
	}{
		{limit.Enforce, 3, limit.Allowed, nil, 0},
		{limit.Shadow, 3, limit.Allowed, nil, 1},
		{limit.Unlimited, 3, limit.Allowed, nil, 1},
		{limit.Block, 3, limit.Refused, nil, 1},
		{limit.Shadow, 1, 0, ErrUnable, 1}, // not yet heard that it is enforced: nothing becomes unlimited
		{limit.Unlimited, 1, 0, ErrUnable, 1},
	} {
		t.Run(c.mode.String(), func(t *testing.T) {
			d := deployment(t, conn, rule, map[string]limit.Share{"eu": 600_000, "us": 400_000}, 5*time.Second)
			eu := d["eu"]
			if err := eu.rules.Replace(func(s *snapshot.Snapshot) (*snapshot.Snapshot, error) {
				b := snapshot.Empty("eu").Edit()
				b.SetRule(login.Tenant, login.Route, &limit.Rule{Capacity: 1, Refill: 1, PeriodSeconds: 86_400, Mode: c.mode, Revision: limit.Revision{Number: c.revision}})
				err := b.SetRegions(s.Regions(), limit.Revision{Number: 1})
				return b.Build(), err
			}); err != nil {
				t.Fatal(err)
			}
			decision, err := d["us"].take(t)
			if decision.Outcome != c.want || err != c.err || c.want == limit.Refused && decision.RetryAfter <= 0 {
				t.Errorf("%v, retry after %v, %v; want %v, %v", decision.Outcome, decision.RetryAfter, err, c.want, c.err)
			}
			bare, err := eu.store.Take(t.Context(), []bucket.Limit{{Key: login, Rule: rule, Revision: limit.Revision{Number: 9}, Base: limit.Whole}})
			if err != nil || bare.Remaining != c.left {
				t.Errorf("%d tokens left at the home, want %d (%v)", bare.Remaining, c.left, err)
			}
		})
	}
}
