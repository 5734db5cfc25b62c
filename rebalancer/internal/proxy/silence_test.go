package proxy

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"partidor.dev/partidor/rebalancer/internal/ledger"
	"partidor.dev/partidor/shared/limit"
	"partidor.dev/partidor/shared/rights/lease"
	"partidor.dev/partidor/shared/testenv"
	"partidor.dev/partidor/shared/testenv/natsenv"
	"partidor.dev/partidor/shared/wire"
)

// court is the control plane over a real NATS, and what us says and hears.
type court struct {
	conn   *nats.Conn
	voter  *Voter
	record *record
	grants chan wire.Grant
	stamp  int64
}

func newCourt(t *testing.T, terms lease.Terms) *court {
	t.Helper()
	base := func(s limit.Share) *limit.Share { return &s }
	c := &court{conn: natsenv.Start(t).Conn(t), grants: make(chan wire.Grant, 1000)}
	c.record = &record{leases: map[string]ledger.RegionLease{}, mirror: ledger.Mirror{
		Rules: ledger.NewRules(),
		Regions: []ledger.Region{{Name: "ap", Domain: "a", State: ledger.RegionActive}, {Name: "eu", Domain: "b", State: ledger.RegionActive},
			{Name: "us", Domain: "c", State: ledger.RegionActive}},
		Splits: map[limit.Key]ledger.Split{key: {Key: key, Regions: []ledger.RegionShare{
			{Region: "ap", Target: 100_000, Base: base(200_000)}, {Region: "eu", Target: 600_000, Base: base(500_000)}, {Region: "us", Target: 300_000, Base: base(300_000)}}}}}}
	c.voter = NewVoter(VoterOptions{Conn: c.conn, Instance: "rebalancer-1", Started: time.Now(), Logger: slog.New(slog.DiscardHandler),
		Term: func() int64 { return 7 }, Terms: terms})
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- c.voter.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	if _, err := c.conn.Subscribe(wire.SubjectGrant("us", wire.SenderControl), func(m *nats.Msg) {
		var g wire.Grant
		if wire.Decode(m.Data, &g) == nil {
			c.grants <- g
		}
	}); err != nil {
		t.Fatal(err)
	}
	return c
}

func (c *court) keeper() *Keeper {
	return &Keeper{Ledger: c.record, Proxy: c.record, Voter: c.voter, Control: func() string { return "" }, Floor: func() float64 { return 0.05 },
		Forget: func(string) {}, Holder: "x", Logger: slog.New(slog.DiscardHandler)}
}

// renew says what an instance of a region says.
func (c *court) renew(t *testing.T, region string, incarnation int64, fences bool) {
	t.Helper()
	c.stamp++
	data, err := wire.Encode(&wire.Renewal{Header: wire.Header{Region: region, Instance: region + "-1", Incarnation: incarnation, Started: 1},
		Stamp: c.stamp, LeaseMillis: 100, Fences: fences, Floor: 60_000})
	if err == nil {
		err = c.conn.Publish(wire.SubjectRenew(region), data)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// granted renews until an answer to that renewal has come.
func (c *court) granted(t *testing.T, incarnation int64, fences bool) wire.Grant {
	t.Helper()
	var last wire.Grant
	before := c.stamp
	eventually(t, "us is answered", func() bool {
		c.renew(t, "us", incarnation, fences)
		for len(c.grants) > 0 {
			last = <-c.grants
		}
		return last.Stamp > before
	})
	return last
}

// eventually waits for a condition, for as long as the slowest machine may take.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	testenv.Eventually(t, 30*time.Second, func() error {
		if !holds() {
			return errors.New("not yet: " + what)
		}
		return nil
	})
}

// brief terms: nobody is answered in this long, on the slowest machine, only where the test falls silent.
var brief = lease.Terms{Lease: 100 * time.Millisecond, Margin: 100 * time.Millisecond, Renew: 50 * time.Millisecond}

// TestSilentRegionIsRecoveredOnce: us calls, falls silent, is recovered once with all that its floor allows, is refused under its
// old number when it calls again, and answered under a higher one.
func TestSilentRegionIsRecoveredOnce(t *testing.T) {
	c := newCourt(t, brief)
	eventually(t, "us is heard", func() bool { c.renew(t, "us", 10, true); return c.voter.life("us") == 10 })
	if len(c.grants) > 0 {
		t.Error("renewals were answered before the ledger was read")
	}
	s := &silence{keeper: c.keeper(), term: 7, done: map[string]bool{}}
	var m ledger.Mirror
	eventually(t, "us is recovered", func() bool {
		if err := s.watch(t.Context(), &m); err != nil {
			t.Fatal(err)
		}
		return s.done["us"]
	})
	for range 3 {
		if err := s.watch(t.Context(), &m); err != nil {
			t.Fatal(err)
		}
	}
	if len(c.record.claims) != 1 {
		t.Fatalf("recovered %d times", len(c.record.claims))
	}
	claim := c.record.claims[0]
	if claim.Region != "us" || len(claim.Peers) != 2 || claim.Sure == nil || claim.Number <= 10 || claim.Number%2 == 0 {
		t.Errorf("claimed %+v", claim)
	}
	if k := claim.Keys[0]; k.Base != 300_000 || k.Floor != 60_000 {
		t.Errorf("base %d and floor %d, want the floor that us called its own", k.Base, k.Floor)
	}
	if got := c.record.leases["us"]; got.Incarnation != claim.Number || !got.Fences || got.Floor != 60_000 {
		t.Errorf("the ledger keeps %+v", got)
	}
	if d := c.record.committed; len(d) != 1 || d[0].Term != 7 {
		t.Errorf("committed %+v", d)
	}
	if g := c.granted(t, 10, true); g.Known != claim.Number {
		t.Errorf("renewal of a former life answered by %+v, want to be told of number %d", g, claim.Number)
	}
	if err := claim.Sure(t.Context()); err == nil {
		t.Error("a region that has just called would have been minted for others")
	}
	eventually(t, "us is answered under a higher number", func() bool {
		g := c.granted(t, claim.Number+1, true)
		return g.ReceiverIncarnation == claim.Number+1 && g.Known == 0
	})
}

// TestNobodyIsRecovered: what does not fence, what was never heard, two regions at once, and regions in fewer than three domains.
func TestNobodyIsRecovered(t *testing.T) {
	for name, c := range map[string]struct {
		call    map[string]bool // regions that call once, and whether they fence
		change  func(r *record)
		problem bool
	}{
		"a region that does not fence": {call: map[string]bool{"us": false}},
		"regions that never called":    {},
		"two regions away":             {call: map[string]bool{"us": true, "ap": true}, problem: true},
		"two domains":                  {call: map[string]bool{"us": true}, change: func(r *record) { r.mirror.Regions[0].Domain = "b" }},
		"one dead, one silent": {call: map[string]bool{"us": true}, problem: true,
			change: func(r *record) { r.mirror.Regions[0].State = ledger.RegionDead }},
	} {
		t.Run(name, func(t *testing.T) {
			w := newCourt(t, brief)
			if c.change != nil {
				c.change(w.record)
			}
			s := &silence{keeper: w.keeper(), term: 7, done: map[string]bool{}}
			var m ledger.Mirror
			_ = s.watch(t.Context(), &m) // from here on renewals are answered
			eventually(t, "they are heard", func() bool {
				for region, fences := range c.call {
					w.renew(t, region, 10, fences)
				}
				for region := range c.call {
					if w.voter.life(region) == 0 {
						return false
					}
				}
				return true
			})
			heard := time.Now() // by now; nobody looks while one is silent and the other is not yet
			eventually(t, "long enough", func() bool { return time.Since(heard) > 4*(brief.Lease+brief.Margin) })
			for range 3 {
				if err := s.watch(t.Context(), &m); (err != nil) != c.problem {
					t.Errorf("a look at them ends with %v", err)
				}
			}
			if len(w.record.claims) > 0 {
				t.Errorf("claimed %+v", w.record.claims)
			}
		})
	}
}

// TestMintingTakesEverybodysAgreement: a peer that answers without agreeing, as one would that knows nothing of leases, is no
// agreement; and a region that lives under a higher number is left alone.
func TestMintingTakesEverybodysAgreement(t *testing.T) {
	w := newWorld(t)
	w.serve(t, "ap")
	w.serve(t, "eu")
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	c := claim()
	c.Sure = func(context.Context) error { return nil }
	before := w.share("ap") + w.share("eu")
	if _, err := w.proxy().Recover(ctx, c); err == nil || w.share("ap")+w.share("eu") != before {
		t.Errorf("minted without agreement: %v", err)
	}
	c.Number -= 2
	long, stop := context.WithTimeout(t.Context(), 20*time.Second)
	defer stop()
	if _, err := w.proxy().Recover(long, c); err == nil || long.Err() != nil {
		t.Errorf("a region under a higher number: %v, want to give up at once", err)
	}
}
