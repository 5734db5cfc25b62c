package exchange

import (
	"context"
	"errors"

	"go.opentelemetry.io/otel/metric"

	"partidor.dev/partidor/shared/rights"
	"partidor.dev/partidor/shared/rights/agent"
	"partidor.dev/partidor/shared/rights/redisstore"
	"partidor.dev/partidor/shared/telemetry"
)

// metrics of transfers. None carries a tenant or a route.
type metrics struct {
	steps, moved, lent, messages, drops metric.Int64Counter
	keys, fenced                        metric.Int64Gauge
}

func newMetrics(m metric.Meter) (*metrics, error) {
	var errs []error
	counter := func(name, unit, about string) metric.Int64Counter {
		c, err := m.Int64Counter(name, metric.WithUnit(unit), metric.WithDescription(about))
		errs = append(errs, err)
		return c
	}
	x := &metrics{
		steps:    counter("partidor.transfer.steps", "{step}", "Steps of rights executed in the regional Redis, by operation and verdict."),
		moved:    counter("partidor.transfer.share", "{ppm}", "Share given to other regions, in parts per million of a key, summed over keys."),
		lent:     counter("partidor.transfer.loans", "{token}", "Whole tokens lent to other regions."),
		messages: counter("partidor.transfer.messages", "{key}", "Keys spoken of in messages between regions, by kind."),
		drops:    counter("partidor.transfer.dropped", "{message}", "Messages dropped, by reason."),
	}
	var err error
	x.fenced, err = m.Int64Gauge("partidor.lease.fenced", metric.WithUnit("{region}"), metric.WithDescription("1 while this instance keeps to the floor because no majority renews its region's lease, else 0."))
	errs = append(errs, err)
	x.keys, err = m.Int64Gauge("partidor.transfer.keys", metric.WithUnit("{key}"), metric.WithDescription("Keys that the region's agent has in mind; 0 where another instance drives."))
	if err := errors.Join(append(errs, err)...); err != nil {
		return nil, err
	}
	// What has not happened yet is 0 and not unknown, so that the first time is an increase.
	x.moved.Add(context.Background(), 0)
	x.lent.Add(context.Background(), 0)
	for _, reason := range []string{"malformed", "overflow", "step", "unsent"} {
		x.drops.Add(context.Background(), 0, metric.WithAttributes(telemetry.AttributeReason.String(reason)))
	}
	return x, nil
}

func (x *metrics) step(ctx context.Context, op rights.Op, r *redisstore.Result) {
	verdict := r.Report.Verdict.String()
	if r.Err != nil {
		verdict = "failed"
	}
	x.steps.Add(ctx, 1, metric.WithAttributes(telemetry.AttributeOperation.String(op.String()), telemetry.AttributeVerdict.String(verdict)))
	if r.Err != nil || r.Report.Amount <= 0 {
		return
	}
	switch op {
	case rights.OpGive:
		x.moved.Add(ctx, r.Report.Amount)
	case rights.OpLend:
		x.lent.Add(ctx, r.Report.Amount)
	}
}

func (x *metrics) sent(ctx context.Context, kind string, keys int) {
	x.messages.Add(ctx, int64(keys), metric.WithAttributes(telemetry.AttributeKind.String(kind)))
}

func (x *metrics) dropped(ctx context.Context, reason string) {
	x.drops.Add(ctx, 1, metric.WithAttributes(telemetry.AttributeReason.String(reason)))
}

func (x *metrics) fence(ctx context.Context, fenced bool) {
	n := int64(0)
	if fenced {
		n = 1
	}
	x.fenced.Record(ctx, n)
}

func (x *metrics) agent(ctx context.Context, a *agent.Agent) { x.keys.Record(ctx, int64(a.Keys())) }
