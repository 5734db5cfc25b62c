package admit

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"partidor.dev/partidor/shared/limit"
)

// Attributes of the decision span.
const (
	attrOutcome   = attribute.Key("partidor.outcome")
	attrSource    = attribute.Key("partidor.source")
	attrRoute     = attribute.Key("partidor.route")
	attrTenant    = attribute.Key("partidor.tenant")
	attrRemaining = attribute.Key("partidor.remaining")
	attrShare     = attribute.Key("partidor.share")
	attrRevision  = attribute.Key("partidor.revision")
	attrDegraded  = attribute.Key("partidor.degraded")
)

// traced is admit under a span. Only requests whose span is recorded come here: for the others a span would cost three
// allocations and tell nobody anything.
func (a *Admitter) traced(ctx context.Context, now time.Time, req Request) limit.Decision {
	ctx, span := a.opts.Tracer.Start(ctx, "decision")
	defer span.End()
	d := a.admit(ctx, now, req)
	span.SetAttributes(
		attrTenant.String(req.Tenant), attrRoute.String(d.Key.Route),
		attrOutcome.String(d.Outcome.String()), attrSource.String(d.Source.String()),
		attrRemaining.Int64(d.Remaining), attrShare.Int64(int64(d.Share)), attrRevision.String(d.Revision.String()),
		attrDegraded.Bool(d.Degraded),
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
