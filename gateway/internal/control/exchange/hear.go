package exchange

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"partidor.dev/partidor/shared/limit"
	"partidor.dev/partidor/shared/rights"
	"partidor.dev/partidor/shared/rights/agent"
	"partidor.dev/partidor/shared/telemetry"
	"partidor.dev/partidor/shared/wire"
)

// heard is a decoded message with the trace it belongs to.
type heard struct {
	trace   context.Context //nolint:containedctx // a trace on its way to the loop
	message wire.Message
}

// subscribe listens to everything the agent needs and returns what ends that.
func (x *Exchange) subscribe() (stop func(), err error) {
	own := x.o.Region
	subjects := map[string]func() wire.Message{
		wire.SubjectAdvice(own):        func() wire.Message { return new(wire.Advice) },
		wire.SubjectAsk(own):           func() wire.Message { return new(wire.Ask) },
		wire.SubjectTransfer(own, "*"): func() wire.Message { return new(wire.Transfer) },
		wire.SubjectAck(own, "*"):      func() wire.Message { return new(wire.Ack) },
		wire.SubjectVoid(own, "*"):     func() wire.Message { return new(wire.Void) },
		wire.SubjectAnswer(own, "*"):   func() wire.Message { return new(wire.Answer) },
		wire.SubjectHot(own):           func() wire.Message { return new(wire.Usage) },
		wire.SubjectRenew("*"):         func() wire.Message { return new(wire.Renewal) },
		wire.SubjectGrant(own, "*"):    func() wire.Message { return new(wire.Grant) },
		wire.SubjectUsage(own):         func() wire.Message { return new(wire.Usage) },
	}
	var subs []*nats.Subscription
	stop = func() {
		for _, s := range subs {
			_ = s.Unsubscribe() // the connection may be gone already
		}
	}
	for subject, fresh := range subjects {
		s, err := x.o.Conn.Subscribe(subject, func(m *nats.Msg) { x.receive(m, fresh()) })
		if err != nil {
			stop()
			return nil, fmt.Errorf("subscribe to %s: %w", subject, err)
		}
		subs = append(subs, s)
	}
	return stop, nil
}

// receive decodes a message and hands it to the loop, or drops and counts it.
func (x *Exchange) receive(m *nats.Msg, into wire.Message) {
	ctx := telemetry.Extract(context.Background(), m.Header)
	err := wire.Decode(m.Data, into)
	if err == nil && strings.HasSuffix(m.Sub.Subject, ".*") && !strings.HasSuffix(m.Subject, "."+wire.Sender(into)) {
		err = fmt.Errorf("sent in the name of region %q", wire.Sender(into)) // which the subject, guarded by NATS, does not allow
	}
	if err != nil {
		x.metrics.dropped(ctx, "malformed")
		x.o.Logger.DebugContext(ctx, "message refused", "subject", m.Subject, "error", err)
		return
	}
	select {
	case x.inbox <- heard{trace: ctx, message: into}:
	default:
		x.metrics.dropped(ctx, "overflow")
	}
}

// handle takes in one thing that waits for the loop. Without office only demand is followed, so that whoever takes over
// knows it already.
func (x *Exchange) handle(ctx context.Context, m any) {
	now := time.Now()
	switch m := m.(type) {
	case event:
		m(ctx, now)
	case done:
		x.finished(ctx, now, m)
	case restored:
		for _, k := range m.lost {
			x.lost(ctx, now, k)
		}
		for i := range m.keys {
			x.noteMoved(m.keys[i], Recorded{m.states[i].Base, m.states[i].Floor})
			if x.agent != nil {
				x.agent.Restore(now, m.keys[i], &m.states[i])
			}
			if m.states[i].Phase == rights.Relearning {
				x.relearn(ctx, now, m.keys[i], m.states[i].Incarnation)
			}
		}
	case heard:
		switch l := m.message.(type) {
		case *wire.Renewal:
			x.hearRenewal(ctx, l)
			return
		case *wire.Grant:
			x.hearGrant(ctx, now, l)
			return
		}
		if u, ok := m.message.(*wire.Usage); ok {
			if u.Region == x.o.Region {
				x.demand.hear(now, u)
			}
			return
		}
		if t, ok := m.message.(*wire.Transfer); ok && t.To == x.o.Region && x.o.Credited != nil {
			for _, r := range t.Rows {
				x.o.Credited(now, limit.Key{Tenant: r.Tenant, Route: r.Route})
			}
		}
		if x.agent != nil {
			x.hear(ctx, now, m)
		}
	}
}

func (x *Exchange) hear(ctx context.Context, now time.Time, h heard) {
	switch m := h.message.(type) {
	case *wire.Void:
		x.hearVoid(ctx, m)
	case *wire.Answer:
		x.hearAnswer(ctx, now, m)
	case *wire.Advice:
		if now.Sub(x.started) < x.o.WarmUp {
			return // it comes again with the next cycle
		}
		moves := make([]agent.Advice, len(m.Moves))
		for i, v := range m.Moves {
			key := limit.Key{Tenant: v.Tenant, Route: v.Route}
			moves[i] = agent.Advice{Key: key, To: v.To, Term: m.Term, Cycle: m.Cycle, Target: max(v.Target, v.Floor), Amount: v.Amount}
			x.traces.remember(now, key, h.trace)
		}
		x.agent.Advise(now, moves)
	case *wire.Ask:
		if m.To != x.o.Region {
			return
		}
		for _, k := range m.Keys {
			x.traces.remember(now, limit.Key{Tenant: k.Tenant, Route: k.Route}, h.trace)
			x.agent.HearAsk(now, agent.Ask{
				Key: limit.Key{Tenant: k.Tenant, Route: k.Route}, From: m.Region, To: m.To,
				Need: k.Need, Flow: k.Flow, Rate: k.Rate, Fill: k.Fill, Urgent: k.Urgent,
				Life: time.Duration(min(k.LifeMillis, 60_000)) * time.Millisecond, Spare: k.Spare,
			})
		}
	case *wire.Transfer:
		x.hearRows(now, m, h.trace)
	case *wire.Ack:
		if m.To != x.o.Region {
			return
		}
		for _, r := range m.Rows {
			x.agent.HearAck(now, agent.AckMessage{
				Key: limit.Key{Tenant: r.Tenant, Route: r.Route}, Spare: r.Spare,
				Ack: rights.Ack{
					From: m.Region, To: m.To, Incarnation: m.Incarnation, Receiver: m.ReceiverIncarnation, Epoch: r.Epoch,
					Received: rights.Received{Sent: rights.Sent{Share: r.Share, Ride: r.Ride, Loan: r.Loan}, Refused: r.Refused},
				},
			})
		}
	}
}

func (x *Exchange) hearRows(now time.Time, m *wire.Transfer, trace context.Context) {
	if m.To != x.o.Region {
		return
	}
	for _, r := range m.Rows {
		key := limit.Key{Tenant: r.Tenant, Route: r.Route}
		x.traces.remember(now, key, trace)
		x.agent.HearRow(now, agent.RowMessage{
			Key: key, Spare: r.Spare,
			Row: rights.Row{
				From: m.Region, To: m.To, Incarnation: m.Incarnation, Receiver: m.ReceiverIncarnation, Epoch: r.Epoch,
				Base: r.Base, Sent: rights.Sent{Share: r.Share, Ride: r.Ride, Loan: r.Loan},
			},
		})
	}
}
