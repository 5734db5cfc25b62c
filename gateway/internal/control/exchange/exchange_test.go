package exchange

import (
	"context"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"partidor.dev/partidor/shared/limit"
	"partidor.dev/partidor/shared/telemetry"
	"partidor.dev/partidor/shared/wire"
)

var key = limit.Key{Tenant: "shop-a", Route: "create-order"}

func advise(t *testing.T, s *site, ctx context.Context, a wire.Advice) {
	t.Helper()
	a.Header = wire.Header{Region: "world", Instance: "rebalancer-1", Sequence: 1, Started: 1}
	data, err := wire.Encode(&a)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.conn.PublishMsg(&nats.Msg{Subject: wire.SubjectAdvice(s.name), Header: telemetry.Inject(ctx, nil), Data: data}); err != nil {
		t.Fatal(err)
	}
}

func move(to string, from, target limit.Share) []wire.Move {
	return []wire.Move{{Tenant: key.Tenant, Route: key.Route, To: to, From: from, Target: target, Amount: from - target, Floor: 35_000}}
}

// TestAdviceMovesShare: two regions, two instances each, a link that loses a third of the messages, doubles a third and
// delays all. Advice turns 70/30 into 20/80, and coming again or late gives nothing twice. Drained buckets are not refilled
// by it, and every trace joins.
func TestAdviceMovesShare(t *testing.T) {
	rule := limit.Rule{Capacity: 200, Refill: 1, PeriodSeconds: 100, Revision: limit.Revision{Epoch: 1, Number: 1}}
	sites := newSites(t, rule, regionShare{"eu", 700_000}, regionShare{"us", 300_000})
	eu, us := sites[0], sites[1]
	link(t, eu, us, 0.33, 0.33, 60*time.Millisecond)
	for _, s := range sites {
		s.start(t, s.name+"-1", nil)
		s.start(t, s.name+"-2", nil)
	}
	eu.alive(t)
	us.alive(t)
	if !eu.take(t, key, 140) || !us.take(t, key, 60) {
		t.Fatal("full buckets refused")
	}
	began := time.Now()
	ctx, span := eu.tracer.Tracer("test").Start(context.Background(), "advise")
	span.End()
	order := wire.Advice{Term: 3, Cycle: 9, Moves: move("us", 700_000, 200_000)}
	await(t, "share at 20/80", func() bool {
		order.Cycle++             // an advice that a busy machine cut short is not followed again under its number
		advise(t, eu, ctx, order) // each of these more than once over this link
		return eu.state(t, key).Share == 200_000 && us.state(t, key).Share == 800_000
	})
	await(t, "rows acknowledged", func() bool {
		e, u := eu.state(t, key), us.state(t, key)
		return !e.Pair("us").Pending() && !u.Pair("eu").Pending()
	})
	advise(t, eu, ctx, wire.Advice{Term: 2, Cycle: 99, Moves: move("us", 200_000, 50_000)}) // of a former leader
	advise(t, eu, ctx, order)
	for _, s := range []*site{eu, us} {
		if got, refill := s.state(t, key).Tokens, time.Since(began).Seconds()/100+0.01; got > refill {
			t.Errorf("%s has %g tokens, more than the %g that came in: a move refilled it", s.name, got, refill)
		}
	}
	if e, u := eu.state(t, key), us.state(t, key); e.Share != 200_000 || u.Share != 800_000 || e.Base != 700_000 {
		t.Errorf("shares %d and %d, eu's base %d", e.Share, u.Share, e.Base)
	}
	await(t, "one trace from advice to the other region", func() bool {
		for _, s := range us.spans.GetSpans() {
			if s.Name == "transfer.apply" && s.SpanContext.TraceID() == span.SpanContext().TraceID() {
				return true
			}
		}
		return false
	})
}

// TestDonorKeepsWhatItNeeds: advice to give what the region is using is not followed.
func TestDonorKeepsWhatItNeeds(t *testing.T) {
	rule := limit.Rule{Capacity: 100, Refill: 100, PeriodSeconds: 1, Revision: limit.Revision{Epoch: 1, Number: 1}}
	sites := newSites(t, rule, regionShare{"eu", 700_000}, regionShare{"us", 300_000})
	eu, us := sites[0], sites[1]
	link(t, eu, us, 0, 0, time.Millisecond)
	for _, s := range sites {
		s.start(t, s.name+"-1", nil)
	}
	usage := wire.Usage{Header: wire.Header{Region: "eu", Instance: "eu-1", Started: 1}}
	await(t, "eu gives down to what it needs", func() bool {
		usage.ElapsedMillis, usage.Sequence = usage.ElapsedMillis+1000, usage.Sequence+1 // 60 tokens a second
		usage.Keys = []wire.KeyUsage{{Tenant: key.Tenant, Route: key.Route, Admitted: 60 * usage.Sequence}}
		data, err := wire.Encode(&usage)
		if err != nil {
			t.Fatal(err)
		}
		if err := eu.conn.Publish(wire.SubjectUsage("eu"), data); err != nil {
			t.Fatal(err)
		}
		if usage.Sequence > 50 {
			advise(t, eu, context.Background(), wire.Advice{Term: 1, Cycle: int64(usage.Sequence), Moves: move("us", 700_000, 100_000)})
		}
		return us.state(t, key).Moved
	})
	if e := eu.state(t, key); e.Share < 600_000 {
		t.Errorf("eu is left with %d, and needs more than 600000", e.Share)
	}
}

// TestTakeOver: the instance that gave dies before its row arrives. Another one finds the row and sends it again.
func TestTakeOver(t *testing.T) {
	rule := limit.Rule{Capacity: 200, Refill: 100, PeriodSeconds: 1, Revision: limit.Revision{Epoch: 1, Number: 1}}
	sites := newSites(t, rule, regionShare{"eu", 700_000}, regionShare{"us", 300_000})
	eu, us := sites[0], sites[1]
	cut := link(t, eu, us, 0, 0, time.Millisecond)
	stop := eu.start(t, "eu-1", nil)
	us.start(t, "us-1", nil)
	eu.alive(t)
	us.alive(t)
	cut() // nobody carries its messages
	cycle := int64(0)
	await(t, "eu has given", func() bool {
		cycle++
		advise(t, eu, context.Background(), wire.Advice{Term: 1, Cycle: cycle, Moves: move("us", 700_000, 500_000)})
		return eu.state(t, key).Share == 500_000
	})
	stop()
	link(t, eu, us, 0, 0, time.Millisecond)
	eu.start(t, "eu-2", nil)
	await(t, "the row arrived and is acknowledged", func() bool {
		e := eu.state(t, key)
		return us.state(t, key).Share == 500_000 && !e.Pair("us").Pending()
	})
}
