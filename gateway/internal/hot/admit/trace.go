package admit

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"partidor.dev/partidor/shared/limit"
	"partidor.dev/partidor/shared/telemetry"
)

// traced is admit under a span. Only requests whose span is recorded come here: for the others a span would cost three
// allocations and tell nobody anything.
func (a *Admitter) traced(ctx context.Context, now time.Time, req Request) limit.Decision {
	ctx, span := a.opts.Tracer.Start(ctx, "decision")
	defer span.End()
	d := a.admit(ctx, now, req)
	span.SetAttributes(
		telemetry.AttributeTenant.String(req.Tenant), telemetry.AttributeRoute.String(d.Key.Route),
		attribute.Int64("partidor.cost", req.Cost),
		telemetry.AttributeOutcome.String(d.Outcome.String()), telemetry.AttributeSource.String(d.Source.String()),
		attribute.Int64("partidor.remaining", d.Remaining), attribute.Float64("partidor.retry_after", d.RetryAfter.Seconds()),
		telemetry.AttributeShare.Int64(int64(d.Share)), telemetry.AttributeRevision.String(d.Revision.String()),
		telemetry.AttributeDegraded.Bool(d.Degraded),
	)
	return d
}

// spanFailed notes on the current span, if it is recorded, that Redis did not answer.
func spanFailed(ctx context.Context, err error) {
	span := trace.SpanFromContext(ctx)
	if span.IsRecording() {
		span.RecordError(err)
		span.SetStatus(codes.Error, "redis did not decide")
	}
}
