package exchange

import (
	"context"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"partidor.dev/partidor/gateway/internal/snapshot"
	"partidor.dev/partidor/shared/limit"
	"partidor.dev/partidor/shared/rights"
	"partidor.dev/partidor/shared/wire"
)

// moved starts two regions and moves the key from 70/30 to 20/80.
func moved(t *testing.T) (eu, us *site) {
	t.Helper()
	rule := limit.Rule{Capacity: 200, Refill: 1, PeriodSeconds: 100, Revision: limit.Revision{Epoch: 1, Number: 1}}
	sites := newSites(t, rule, regionShare{"eu", 700_000}, regionShare{"us", 300_000})
	eu, us = sites[0], sites[1]
	link(t, eu, us, 0.2, 0.2, 20*time.Millisecond)
	for _, s := range sites {
		s.stop = s.start(t, s.name+"-1", nil)
	}
	eu.alive(t)
	us.alive(t)
	cycle := int64(0) // an advice whose step a busy machine cut short is not followed again; the next one is
	await(t, "share at 20/80", func() bool {
		cycle++
		advise(t, eu, context.Background(), wire.Advice{Term: 1, Cycle: cycle, Moves: move("us", 700_000, 200_000)})
		e := eu.state(t, key)
		return e.Share == 200_000 && us.state(t, key).Share == 800_000 && !e.Pair("us").Pending()
	})
	return eu, us
}

// movedThenStopped is moved, with us's only instance stopped afterwards.
func movedThenStopped(t *testing.T) (eu, us *site) {
	t.Helper()
	eu, us = moved(t)
	us.stop()
	return eu, us
}

// TestDeclaredDead: us is away. A leader acts in its name: eu voids its former lives and answers, and what us held above its
// floor is minted anew for eu. When us returns, with its data intact, it learns that it lives on with its floor.
func TestDeclaredDead(t *testing.T) {
	eu, us := movedThenStopped(t)
	number := time.Now().UnixMilli()
	answers := make(chan *wire.Answer, 16)
	sub, err := eu.conn.Subscribe(wire.SubjectAnswer("us", "eu"), func(m *nats.Msg) {
		a := new(wire.Answer)
		if wire.Decode(m.Data, a) == nil && a.ReceiverIncarnation == number {
			answers <- a
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	defer sub.Unsubscribe() //nolint:errcheck // the connection ends with the test
	say := func(subject string, m wire.Message) {
		data, err := wire.Encode(m)
		if err == nil {
			err = eu.conn.Publish(subject, data)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	leader := wire.Header{Region: "us", Instance: "rebalancer-1", Incarnation: number, Started: 1}
	say(wire.SubjectVoid("eu", "us"), &wire.Void{Header: leader, To: "eu", Keys: []wire.KeyName{{Tenant: key.Tenant, Route: key.Route}}, Dead: true})
	a := <-answers
	if len(a.Keys) != 1 {
		t.Fatalf("eu answered %+v", a)
	}
	k := &a.Keys[0]
	answer := rights.Answer{
		From: "eu", To: "us", Incarnation: k.Incarnation, Receiver: number, Epoch: k.Epoch, Base: k.Base,
		Out: sentOf(k.Out), In: receivedOf(k.In), Acked: receivedOf(k.Acked),
	}
	minted := rights.Excess(300_000, 15_000, []rights.Answer{answer})
	row := rights.MintRow(answer, 300_000, minted)
	say(wire.SubjectTransfer("eu", "us"), &wire.Transfer{
		Header: leader, To: "eu", ReceiverIncarnation: row.Receiver,
		Rows: []wire.Row{{
			Tenant: key.Tenant, Route: key.Route, Epoch: row.Epoch, Share: row.Sent.Share, Ride: row.Sent.Ride, Loan: row.Sent.Loan, Base: row.Base,
		}},
	})
	await(t, "eu has what us held above its floor", func() bool { return eu.state(t, key).Share == 985_000 })
	us.start(t, "us-2", nil)
	await(t, "us has come back with its floor", func() bool {
		s := us.state(t, key)
		return s.Incarnation > number && s.Phase == rights.Active && s.Share == 15_000
	})
	if e := eu.state(t, key); e.Share != 985_000 {
		t.Errorf("eu has %d", e.Share)
	}
}

// TestDataLost: a region's Redis forgets everything. Its peer remembers, so the share comes back, and the bucket starts empty.
func TestDataLost(t *testing.T) {
	eu, us := moved(t)
	before := us.state(t, key).Incarnation
	if err := us.client.FlushAll(context.Background()).Err(); err != nil {
		t.Fatal(err)
	}
	await(t, "us has its share again", func() bool {
		s := us.state(t, key)
		return s.Share == 800_000 && s.Phase == rights.Active && s.Incarnation > before
	})
	us.alive(t)
	if s := us.state(t, key); s.Tokens > 1 || s.Base != 300_000 {
		t.Errorf("us came back with %g tokens and base %d", s.Tokens, s.Base)
	}
	cycle := int64(1)
	await(t, "shares move again", func() bool {
		cycle++
		advise(t, us, context.Background(), wire.Advice{Term: 1, Cycle: cycle, Moves: move("eu", 800_000, 500_000)})
		return eu.state(t, key).Share == 500_000 && us.state(t, key).Share == 500_000
	})
}

// TestServerReplaced: the server is another one, with the same data or an older copy of it. Nobody can tell which, so the region
// begins anew, at its floor until its peer has answered.
func TestServerReplaced(t *testing.T) {
	eu, us := moved(t)
	before := eu.state(t, key).Incarnation
	if err := eu.client.HSet(context.Background(), "rl:@region", "run", "another").Err(); err != nil {
		t.Fatal(err)
	}
	await(t, "eu lives under a new incarnation", func() bool {
		s := eu.state(t, key)
		return s.Incarnation > before && s.Phase == rights.Active && s.Share == 200_000
	})
	if s := us.state(t, key); s.Share != 800_000 {
		t.Errorf("us has %d", s.Share)
	}
}

// TestFloorMeanwhile: the configured floor is raised after eu has given down to its old one. eu then forgets the key while nobody
// can be asked: it uses the floor that it kept then, and what both use together stays within the whole.
func TestFloorMeanwhile(t *testing.T) {
	rule := limit.Rule{Capacity: 1000, Refill: 1, PeriodSeconds: 1000, Revision: limit.Revision{Epoch: 1, Number: 1}}
	sites := newSites(t, rule, regionShare{"eu", 700_000}, regionShare{"us", 300_000})
	eu, us := sites[0], sites[1]
	cut := link(t, eu, us, 0, 0, time.Millisecond)
	for _, s := range sites {
		s.start(t, s.name+"-1", nil)
	}
	eu.alive(t)
	us.alive(t)
	cycle := int64(0)
	await(t, "eu is at its floor", func() bool {
		cycle++
		advise(t, eu, context.Background(), wire.Advice{Term: 1, Cycle: cycle, Moves: move("us", 700_000, 35_000)})
		_, known := eu.rules.Load().MovedFloor(key)
		return us.share(t) == 965_000 && known
	})
	cut()
	if err := eu.rules.Update(func(b *snapshot.Builder) error {
		return b.SetRegions([]snapshot.Region{{Name: "eu", Base: 700_000, Floor: 140_000}, {Name: "us", Base: 300_000, Floor: 15_000}}, limit.Revision{Epoch: 1, Number: 2})
	}); err != nil {
		t.Fatal(err)
	}
	if err := eu.client.Del(context.Background(), key.Redis()).Err(); err != nil {
		t.Fatal(err)
	}
	if d := eu.decide(t, key, 1); d.Share != 35_000 {
		t.Errorf("before it has begun anew eu decides by %d, its old floor is 35000", d.Share)
	}
	elapsed := int64(0)
	await(t, "eu re-learns", func() bool {
		elapsed++
		offered(t, elapsed, eu)
		s := eu.state(t, key)
		return s.Moved && s.Phase == rights.Relearning
	})
	if s := eu.state(t, key); s.Share != 35_000 || s.Floor != 35_000 {
		t.Errorf("eu uses %d with a floor of %d", s.Share, s.Floor)
	}
	link(t, eu, us, 0, 0, time.Millisecond)
	await(t, "eu has its share again", func() bool {
		s := eu.state(t, key)
		return s.Phase == rights.Active && s.Share == 35_000
	})
}

// TestSingleRegion: without peers there is nobody to ask.
func TestSingleRegion(t *testing.T) {
	rule := limit.Rule{Capacity: 200, Refill: 1, PeriodSeconds: 100, Revision: limit.Revision{Epoch: 1, Number: 1}}
	s := newSites(t, rule, regionShare{"eu", limit.Whole})[0]
	s.start(t, "eu-1", nil)
	s.alive(t)
}
