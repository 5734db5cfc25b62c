package collect

import (
	"context"
	"errors"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// metrics of the collector. No series per key or tenant.
type metrics struct {
	reports, keys, dropped metric.Int64Counter
	reasons                map[string]metric.MeasurementOption
}

func newMetrics(meter metric.Meter, regions func() []RegionStatus) (*metrics, error) {
	m := &metrics{reasons: map[string]metric.MeasurementOption{}}
	for _, r := range []string{dropRepeated, dropAbsurd, dropName, dropOldLife, dropFull, dropMalformed, dropForeign} {
		m.reasons[r] = metric.WithAttributeSet(attribute.NewSet(attribute.String("reason", r)))
	}
	var errs [5]error
	m.reports, errs[0] = meter.Int64Counter("partidor.collect.reports", metric.WithDescription("Usage reports taken in."))
	m.keys, errs[1] = meter.Int64Counter("partidor.collect.keys", metric.WithDescription("Key counters taken in."))
	m.dropped, errs[2] = meter.Int64Counter("partidor.collect.dropped", metric.WithDescription("Reports or keys dropped, by reason."))
	var silence metric.Float64ObservableGauge
	var instances metric.Int64ObservableGauge
	silence, errs[3] = meter.Float64ObservableGauge("partidor.collect.region.silence", metric.WithUnit("s"),
		metric.WithDescription("Time since a region was last heard."))
	instances, errs[4] = meter.Int64ObservableGauge("partidor.collect.region.instances",
		metric.WithDescription("Instances of a region that are alive."))
	if err := errors.Join(errs[:]...); err != nil {
		return nil, err
	}
	_, err := meter.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		for _, r := range regions() {
			region := metric.WithAttributes(attribute.String("region", r.Name))
			o.ObserveFloat64(silence, r.Silence.Seconds(), region)
			o.ObserveInt64(instances, int64(r.Instances), region)
		}
		return nil
	}, silence, instances)
	return m, err
}

func (m *metrics) report(keys int) {
	m.reports.Add(context.Background(), 1)
	m.keys.Add(context.Background(), int64(keys))
}

func (m *metrics) drop(reason string, n int) {
	m.dropped.Add(context.Background(), int64(n), m.reasons[reason])
}
