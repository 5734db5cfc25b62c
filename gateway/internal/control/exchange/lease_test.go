package exchange

import (
	"context"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"partidor.dev/partidor/gateway/internal/snapshot"
	"partidor.dev/partidor/shared/limit"
	"partidor.dev/partidor/shared/rights"
	"partidor.dev/partidor/shared/rights/lease"
	"partidor.dev/partidor/shared/rights/redisstore"
	"partidor.dev/partidor/shared/wire"
)

// quick terms let a test see a lease end; a slow machine only fences more often.
var quick = lease.Terms{Lease: 2 * time.Second, Margin: 500 * time.Millisecond, Renew: 200 * time.Millisecond}

// leased starts three regions in three failure domains, each with one instance that keeps to its lease, and moves the key:
// eu holds 200,000, us 300,000 and ap 500,000; the floors are 5 % of 700,000, 200,000 and 100,000. cut separates eu from all.
func leased(t *testing.T) (eu, us, ap *site, cut func()) {
	t.Helper()
	rule := limit.Rule{Capacity: 1000, Refill: 1, PeriodSeconds: 1000, Revision: limit.Revision{Epoch: 1, Number: 1}}
	sites := newSites(t, rule, regionShare{"eu", 700_000}, regionShare{"us", 200_000}, regionShare{"ap", 100_000})
	eu, us, ap = sites[0], sites[1], sites[2]
	for _, s := range sites {
		s.keepLease(t, 1)
	}
	cuts := []func(){link(t, eu, us, 0, 0, time.Millisecond), link(t, eu, ap, 0, 0, time.Millisecond)}
	link(t, us, ap, 0, 0, time.Millisecond)
	for _, s := range sites {
		s.lead(t, s.name+"-1")
	}
	for _, s := range sites {
		s.alive(t)
		s.unfenced(t)
	}
	cycle := int64(0)
	await(t, "share at 20/30/50", func() bool {
		cycle++
		advise(t, eu, context.Background(), wire.Advice{Term: 1, Cycle: cycle, Moves: move("us", 700_000, 600_000)})
		advise(t, eu, context.Background(), wire.Advice{Term: 1, Cycle: cycle, Moves: move("ap", 600_000, 200_000)})
		e := eu.state(t, key)
		return e.Share == 200_000 && us.state(t, key).Share == 300_000 && ap.state(t, key).Share == 500_000 && !e.Pair("us").Pending() && !e.Pair("ap").Pending()
	})
	return eu, us, ap, func() {
		for _, c := range cuts {
			c()
		}
	}
}

// keepLease declares each region a failure domain of its own and gives the site a guard.
func (s *site) keepLease(t *testing.T, number int64) {
	t.Helper()
	if err := s.rules.Update(func(b *snapshot.Builder) error {
		regions := append([]snapshot.Region(nil), s.rules.Load().Regions()...)
		for i := range regions {
			regions[i].Domain = "domain-of-" + regions[i].Name
		}
		return b.SetRegions(regions, limit.Revision{Epoch: 1, Number: 1 + number})
	}); err != nil {
		t.Fatal(err)
	}
}

// lead starts an instance with a guard of its own; the site's takes and steps keep to it.
func (s *site) lead(t *testing.T, instance string) {
	t.Helper()
	s.stop = s.start(t, instance, func(o *Options) {
		s.guard = lease.NewGuard(s.name, 1, quick, lease.Clock)
		s.rules.Watch(func(n *snapshot.Snapshot) { s.guard.Deploy(n.Votes()) })
		s.takes.SetFenced(s.guard.Fenced)
		o.Store = redisstore.New(redisstore.Options{Client: s.client, Fenced: s.guard.Fenced})
		o.Guard = s.guard
	})
}

func (s *site) unfenced(t *testing.T) {
	t.Helper()
	await(t, s.name+" holds its lease", func() bool { return !s.guard.Fenced() })
}

// proxy speaks in the name of eu as a leader does, and gathers the answers that agree.
type proxy struct {
	number  int64
	answers chan *wire.Answer
	sites   []*site
}

func proxyOf(t *testing.T, number int64, sites ...*site) *proxy {
	t.Helper()
	p := &proxy{number: number, answers: make(chan *wire.Answer, 1024), sites: sites}
	for _, s := range sites {
		sub, err := s.conn.Subscribe(wire.SubjectAnswer("eu", s.name), func(m *nats.Msg) {
			a := new(wire.Answer)
			if wire.Decode(m.Data, a) == nil && a.ReceiverIncarnation == number {
				p.answers <- a
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = sub.Unsubscribe() })
	}
	return p
}

func (p *proxy) header() wire.Header {
	return wire.Header{Region: "eu", Instance: "rebalancer-1", Incarnation: p.number, Started: 1}
}

func (p *proxy) void(t *testing.T) {
	t.Helper()
	for _, s := range p.sites {
		s.say(t, wire.SubjectVoid(s.name, "eu"), &wire.Void{Header: p.header(), To: s.name, Proxy: true, Keys: []wire.KeyName{{Tenant: key.Tenant, Route: key.Route}}})
	}
}

func (s *site) say(t *testing.T, subject string, m wire.Message) {
	t.Helper()
	data, err := wire.Encode(m)
	if err == nil {
		err = s.conn.Publish(subject, data)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestFencedRegionIsTakenOver: eu is cut off. It keeps to its floor before the others agree that it is gone; a leader mints what
// it held above the floor for us; eu, back again, learns that it lives on with its floor.
func TestFencedRegionIsTakenOver(t *testing.T) {
	eu, us, ap, cut := leased(t)
	before := eu.state(t, key).Incarnation
	p := proxyOf(t, time.Now().UnixMilli()+1, us, ap)
	p.void(t)
	cut()
	agreed := map[string]rights.Answer{}
	await(t, "us and ap agree that eu is gone", func() bool {
		p.void(t)
		for len(p.answers) > 0 {
			a := <-p.answers
			if !a.Agreed || len(a.Keys) != 1 {
				t.Fatalf("%s answered %+v", a.Region, a)
			}
			k := &a.Keys[0]
			agreed[a.Region] = rights.Answer{
				From: a.Region, To: "eu", Incarnation: k.Incarnation, Receiver: p.number, Epoch: k.Epoch, Base: k.Base,
				Out: sentOf(k.Out), In: receivedOf(k.In), Acked: receivedOf(k.Acked),
			}
		}
		if len(agreed) == 2 && !eu.guard.Fenced() {
			t.Fatal("all others agree and eu uses its share")
		}
		return len(agreed) == 2
	})
	if s := eu.state(t, key); s.Share != 200_000 {
		t.Errorf("eu's record says %d: a fence moves nothing", s.Share)
	}
	admitted := 0
	for eu.take(t, key, 1) {
		admitted++
	}
	if admitted > 35 {
		t.Errorf("fenced, eu admitted %d, its floor's capacity is 35", admitted)
	}
	minted := rights.Excess(700_000, 35_000, []rights.Answer{agreed["us"], agreed["ap"]})
	if minted != 165_000 {
		t.Fatalf("%d to be minted, want what eu held above its floor", minted)
	}
	row := rights.MintRow(agreed["us"], 700_000, minted)
	await(t, "us has it", func() bool {
		us.say(t, wire.SubjectTransfer("us", "eu"), &wire.Transfer{Header: p.header(), To: "us", ReceiverIncarnation: row.Receiver,
			Rows: []wire.Row{{Tenant: key.Tenant, Route: key.Route, Epoch: row.Epoch, Share: row.Sent.Share, Ride: row.Sent.Ride, Loan: row.Sent.Loan, Base: row.Base}}})
		return us.state(t, key).Share == 465_000
	})
	link(t, eu, us, 0, 0, time.Millisecond)
	link(t, eu, ap, 0, 0, time.Millisecond)
	await(t, "eu lives on with its floor", func() bool {
		s := eu.state(t, key)
		return s.Incarnation > p.number && p.number > before && s.Phase == rights.Active && s.Share == 35_000 && !eu.guard.Fenced()
	})
	if e, u, a := eu.state(t, key), us.state(t, key), ap.state(t, key); e.Share+u.Share+a.Share != limit.Whole {
		t.Errorf("shares %d, %d and %d", e.Share, u.Share, a.Share)
	}
}

// TestFencedRegionGoesOn: eu is cut off for longer than its lease and nobody takes over. It goes on as before, under the same
// incarnation. Meanwhile it neither gives nor accepts.
func TestFencedRegionGoesOn(t *testing.T) {
	eu, us, ap, cut := leased(t)
	before := eu.state(t, key)
	cut()
	await(t, "eu is fenced", eu.guard.Fenced)
	if us.guard.Fenced() || ap.guard.Fenced() {
		t.Error("two of three domains are a majority and go on")
	}
	advise(t, eu, context.Background(), wire.Advice{Term: 1, Cycle: 1000, Moves: move("us", 200_000, 100_000)})
	task := redisstore.Task{Step: rights.Step{Op: rights.OpGive, Key: key, Peer: "us", Amount: 1000}}
	task.Limit, _ = (&Exchange{o: Options{Rules: eu.rules}}).limit(key)
	r := redisstore.New(redisstore.Options{Client: eu.client, Fenced: eu.guard.Fenced, Peers: []string{"ap", "us"}}).Do(context.Background(), []redisstore.Task{task})
	if r[0].Err != nil || r[0].Report.Verdict != rights.Inactive {
		t.Errorf("a fenced region gave: %+v", r[0])
	}
	link(t, eu, us, 0, 0, time.Millisecond)
	link(t, eu, ap, 0, 0, time.Millisecond)
	eu.unfenced(t)
	if s := eu.state(t, key); s.Share != before.Share || s.Incarnation != before.Incarnation {
		t.Errorf("eu has %d under %d, had %d under %d", s.Share, s.Incarnation, before.Share, before.Incarnation)
	}
	cycle := int64(2000)
	await(t, "eu gives again", func() bool {
		cycle++
		advise(t, eu, context.Background(), wire.Advice{Term: 1, Cycle: cycle, Moves: move("us", 200_000, 150_000)})
		return eu.state(t, key).Share == 150_000 && us.state(t, key).Share == 350_000
	})
}

// TestAsymmetricLink: eu hears everybody and is heard by nobody, then the other way round. Either way its renewals are not
// answered, so it keeps to its floor.
func TestAsymmetricLink(t *testing.T) {
	eu, us, ap, cut := leased(t)
	cut()
	for _, way := range []struct {
		name     string
		from, to []*site
	}{
		{"eu hears, and is not heard", []*site{us, ap}, []*site{eu}},
		{"eu is heard, and does not hear", []*site{eu}, []*site{us, ap}},
	} {
		var ends []func()
		for _, from := range way.from {
			for _, to := range way.to {
				ends = append(ends, carry(t, from, to, 0, 0, time.Millisecond))
			}
		}
		await(t, way.name+": it is fenced", eu.guard.Fenced)
		if way.from[0] == eu {
			p := proxyOf(t, time.Now().UnixMilli()+1, us)
			calls, err := us.conn.SubscribeSync(wire.SubjectRenew("eu"))
			if err != nil {
				t.Fatal(err)
			}
			for range 20 { // renewals, for longer than us would have to wait if it heard none
				if _, err := calls.NextMsg(20 * time.Second); err != nil {
					t.Fatal(err)
				}
				p.void(t)
			}
			if len(p.answers) > 0 {
				t.Error("us hears eu and agreed that it is gone")
			}
		}
		for _, end := range ends {
			end()
		}
	}
}
