package exchange

import (
	"context"
	"errors"
	"time"

	"github.com/nats-io/nats.go"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"partidor.dev/partidor/shared/rights/agent"
	"partidor.dev/partidor/shared/telemetry"
	"partidor.dev/partidor/shared/wire"
)

// destination groups what travels in one message: one peer, one pair of incarnations.
type destination struct {
	to          string
	incarnation int64
	receiver    int64
}

func (x *Exchange) sendRows(ctx context.Context, rows []agent.RowMessage) {
	groups := map[destination][]wire.Row{}
	contexts := map[destination][]context.Context{}
	now := time.Now()
	for _, m := range rows {
		d := destination{m.Row.To, m.Row.Incarnation, m.Row.Receiver}
		groups[d] = append(groups[d], wire.Row{
			Tenant: m.Key.Tenant, Route: m.Key.Route, Epoch: m.Row.Epoch, Share: m.Row.Sent.Share, Ride: m.Row.Sent.Ride,
			Loan: m.Row.Sent.Loan, Base: m.Row.Base, Spare: m.Spare,
		})
		if c := x.traces.of(now, m.Key); c != nil {
			contexts[d] = append(contexts[d], c)
		}
	}
	for d, list := range groups {
		for _, chunk := range wire.Chunks(list) {
			m := wire.Transfer{Header: x.header(d.incarnation), To: d.to, ReceiverIncarnation: d.receiver, Rows: chunk}
			x.publish(x.linked(ctx, d.to, contexts[d]), wire.SubjectTransfer(d.to, x.o.Region), "row", len(chunk), &m)
		}
	}
}

// linked opens a span for one message that several traces may have led to: the first is its parent, the others are linked.
func (x *Exchange) linked(ctx context.Context, to string, contexts []context.Context) context.Context {
	if len(contexts) == 0 {
		return ctx
	}
	var links []trace.Link
	for _, c := range contexts[1:] {
		links = append(links, trace.LinkFromContext(c))
	}
	c, span := x.o.Tracer.Start(contexts[0], "transfer.send", trace.WithSpanKind(trace.SpanKindProducer), trace.WithLinks(links...),
		telemetry.Sending(wire.SubjectTransfer(to, x.o.Region)), trace.WithAttributes(telemetry.AttributePeer.String(to)))
	span.End()
	return c
}

func (x *Exchange) sendAcks(ctx context.Context, acks []agent.AckMessage) {
	groups := map[destination][]wire.AckRow{}
	for _, m := range acks {
		d := destination{m.Ack.To, m.Ack.Incarnation, m.Ack.Receiver}
		r := m.Ack.Received
		groups[d] = append(groups[d], wire.AckRow{
			Tenant: m.Key.Tenant, Route: m.Key.Route, Epoch: m.Ack.Epoch, Share: r.Share, Ride: r.Ride, Loan: r.Loan,
			Refused: r.Refused, Spare: m.Spare,
		})
	}
	for d, list := range groups {
		for _, chunk := range wire.Chunks(list) {
			m := wire.Ack{Header: x.header(d.incarnation), To: d.to, ReceiverIncarnation: d.receiver, Rows: chunk}
			x.publish(ctx, wire.SubjectAck(d.to, x.o.Region), "ack", len(chunk), &m)
		}
	}
}

func (x *Exchange) sendAsks(ctx context.Context, asks []agent.Ask) {
	groups := map[string][]wire.AskKey{}
	for _, a := range asks {
		groups[a.To] = append(groups[a.To], wire.AskKey{
			Tenant: a.Key.Tenant, Route: a.Key.Route, Need: a.Need, Flow: a.Flow, Rate: a.Rate, Fill: a.Fill,
			Urgent: a.Urgent, LifeMillis: a.Life.Milliseconds(), Spare: a.Spare,
		})
	}
	for to, list := range groups {
		for _, chunk := range wire.Chunks(list) {
			m := wire.Ask{Header: x.header(0), To: to, Keys: chunk}
			// A trace of its own: the loan that may follow, and its way here, belong to it.
			c, span := x.o.Tracer.Start(ctx, "ask", trace.WithNewRoot(), trace.WithSpanKind(trace.SpanKindProducer), telemetry.Sending(wire.SubjectAsk(to)),
				trace.WithAttributes(telemetry.AttributePeer.String(to), attribute.Int("partidor.keys", len(chunk))))
			x.publish(c, wire.SubjectAsk(to), "ask", len(chunk), &m)
			span.End()
		}
	}
}

// tellHot tells whoever drives what this instance sees of keys near their limit.
func (x *Exchange) tellHot(ctx context.Context) {
	if x.o.Heat == nil {
		return
	}
	hot := x.o.Heat.Hot()
	if len(hot) == 0 {
		return
	}
	for _, chunk := range wire.Chunks(hot) {
		u := wire.Usage{Header: x.header(0), ElapsedMillis: time.Since(x.started).Milliseconds(), Keys: chunk}
		x.publish(ctx, wire.SubjectHot(x.o.Region), "hot", len(chunk), &u)
	}
}

// publish sends one message; a lost one is made good by the next, so errors are counted, not repeated.
func (x *Exchange) publish(ctx context.Context, subject, kind string, keys int, m wire.Message) {
	data, err := wire.Encode(m)
	if err == nil {
		err = x.o.Conn.PublishMsg(&nats.Msg{Subject: subject, Header: telemetry.Inject(ctx, nil), Data: data})
	}
	if err != nil {
		x.metrics.dropped(ctx, "unsent")
		if !errors.Is(err, nats.ErrConnectionClosed) {
			x.o.Logger.DebugContext(ctx, "message not sent", "subject", subject, "error", err)
		}
		return
	}
	x.metrics.sent(ctx, kind, keys)
}
