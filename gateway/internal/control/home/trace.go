package home

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"partidor.dev/partidor/shared/bucket"
	"partidor.dev/partidor/shared/telemetry"
	"partidor.dev/partidor/shared/wire"
)

// traced is request under a span, where the decision that needs it is recorded.
func (h *Home) traced(ctx context.Context, to string, lim *bucket.Limit) (*wire.Consumed, error) {
	if !trace.SpanFromContext(ctx).IsRecording() {
		return h.request(ctx, to, lim)
	}
	ctx, span := h.o.Tracer.Start(ctx, "consume", trace.WithSpanKind(trace.SpanKindClient), telemetry.Sending(wire.SubjectConsume(to)),
		trace.WithAttributes(telemetry.AttributePeer.String(to), attribute.Int64("partidor.cost", lim.Cost)))
	defer span.End()
	reply, err := h.request(ctx, to, lim)
	if err != nil {
		span.RecordError(err)
		span.SetStatus(codes.Error, "no answer")
		return nil, err
	}
	span.SetAttributes(telemetry.AttributeOutcome.String(reply.Outcome))
	return reply, nil
}

// served is decide under a span, where the asker's is recorded.
func (h *Home) served(ctx context.Context, ask *wire.Consume) (reply *wire.Consumed, charged *bucket.Limit) {
	if !trace.SpanContextFromContext(ctx).IsSampled() {
		return h.decide(ctx, ask)
	}
	ctx, span := h.o.Tracer.Start(ctx, "serve", trace.WithSpanKind(trace.SpanKindServer), telemetry.Processing(wire.SubjectConsume(h.o.Region)),
		trace.WithAttributes(telemetry.AttributePeer.String(ask.Region), telemetry.AttributeTenant.String(ask.Tenant),
			telemetry.AttributeRoute.String(ask.Route), attribute.Int64("partidor.cost", ask.Cost)))
	defer span.End()
	reply, charged = h.decide(ctx, ask)
	span.SetAttributes(telemetry.AttributeOutcome.String(reply.Outcome), attribute.Int64("partidor.remaining", reply.Remaining))
	if reply.Outcome == wire.ConsumedUnable {
		span.SetStatus(codes.Error, reply.Outcome)
	}
	return reply, charged
}
