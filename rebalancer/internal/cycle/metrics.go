package cycle

import (
	"context"
	"errors"

	"go.opentelemetry.io/otel/metric"

	"partidor.dev/partidor/shared/telemetry"
)

type metrics struct {
	cycles   metric.Int64Counter
	moves    metric.Int64Counter
	duration metric.Float64Histogram
	keys     metric.Int64Gauge
	wasted   metric.Float64Counter
}

func newMetrics(meter metric.Meter, r *Runner) (*metrics, error) {
	var (
		m    metrics
		errs [6]error
	)
	m.cycles, errs[0] = meter.Int64Counter("partidor.rebalancer.cycles",
		metric.WithDescription("Cycles run, by cause and result."), metric.WithUnit("{cycle}"))
	m.moves, errs[1] = meter.Int64Counter("partidor.rebalancer.moves",
		metric.WithDescription("Moves of share advised to regions."), metric.WithUnit("{move}"))
	m.duration, errs[2] = meter.Float64Histogram("partidor.rebalancer.cycle.duration",
		metric.WithDescription("Time a cycle takes."), metric.WithUnit("s"),
		metric.WithExplicitBucketBoundaries(0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30))
	m.keys, errs[3] = meter.Int64Gauge("partidor.rebalancer.keys",
		metric.WithDescription("Keys in the last plan."), metric.WithUnit("{key}"))
	m.wasted, errs[5] = meter.Float64Counter("partidor.refused.with_room",
		metric.WithDescription("Tokens refused by a region while the limit had room worldwide, as the leader sees it."), metric.WithUnit("{token}"))
	_, errs[4] = meter.Int64ObservableGauge("partidor.rebalancer.paused",
		metric.WithDescription("1 while operators have paused planning."), metric.WithUnit("{pause}"),
		metric.WithInt64Callback(func(_ context.Context, o metric.Int64Observer) error {
			paused := int64(0)
			if r.Parameters().Paused {
				paused = 1
			}
			o.Observe(paused)
			return nil
		}))
	if err := errors.Join(errs[:]...); err != nil {
		return nil, err
	}
	m.wasted.Add(context.Background(), 0)
	return &m, nil
}

func (m *metrics) finished(o Outcome) {
	ctx := context.Background() // the numbers belong to no request
	result := "ok"
	if o.Err != nil {
		result = "failed"
	}
	m.cycles.Add(ctx, 1, metric.WithAttributes(telemetry.AttributeCause.String(o.Cause), telemetry.AttributeResult.String(result)))
	if o.Err == nil {
		m.moves.Add(ctx, int64(o.Moves))
		m.keys.Record(ctx, int64(o.Keys))
	}
	m.duration.Record(ctx, o.Took.Seconds())
}
