package app

import (
	"context"
	"time"

	"github.com/nats-io/nats.go"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"partidor.dev/partidor/rebalancer/internal/advise"
	"partidor.dev/partidor/shared/limit"
	"partidor.dev/partidor/shared/telemetry"
	"partidor.dev/partidor/shared/wire"
)

// announce tells the gateways of every change of the ledger, so that they need not wait for their next poll. Every
// rebalancer does, leading or not: the word is idempotent, and a change of leaders loses none.
func (a *app) announce(ctx context.Context) {
	sequence := uint64(0)
	changed := func(at limit.Revision) {
		sequence++
		a.runner.Poke()
		ctx, span := a.telemetry.TracerProvider.Tracer(scope).Start(ctx, "announce", trace.WithNewRoot(), trace.WithSpanKind(trace.SpanKindProducer),
			trace.WithAttributes(telemetry.AttributeRevision.String(at.String())))
		defer span.End()
		data, err := wire.Encode(&wire.Changed{Revision: at, Header: wire.Header{Version: wire.Version, Region: advise.Sender,
			Instance: a.config.Instance, Sequence: sequence, Started: a.started.UnixMilli()}})
		if err == nil {
			err = a.conn.PublishMsg(&nats.Msg{Subject: wire.SubjectChanged, Data: data, Header: telemetry.Inject(ctx, nats.Header{})})
		}
		if err != nil {
			span.SetStatus(codes.Error, err.Error())
			a.telemetry.Logger.Warn("change not announced, gateways will poll", "revision", at, "error", err)
		}
	}
	away := false
	for ctx.Err() == nil {
		err := a.store.Listen(ctx, func(at limit.Revision) { away = false; changed(at) }, a.runner.Request)
		if err != nil && ctx.Err() == nil && !away {
			away = true
			a.telemetry.Logger.Warn("not listening to the ledger, trying again", "error", err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(time.Second):
		}
	}
}
