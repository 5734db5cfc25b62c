package collect

import (
	"context"
	"errors"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"partidor.dev/partidor/shared/telemetry"
)

// metrics of the collector. No series per key or tenant.
type metrics struct {
	reports, keys, dropped metric.Int64Counter
	tokens                 metric.Float64Counter
	reasons                map[string]metric.MeasurementOption
}

func newMetrics(meter metric.Meter, c *Collector) (*metrics, error) {
	m := &metrics{reasons: map[string]metric.MeasurementOption{}}
	for _, r := range []string{dropRepeated, dropAbsurd, dropName, dropOldLife, dropFull, dropMalformed, dropForeign} {
		m.reasons[r] = metric.WithAttributeSet(attribute.NewSet(telemetry.AttributeReason.String(r)))
	}
	var errs [7]error
	m.reports, errs[0] = meter.Int64Counter("partidor.collect.reports", metric.WithUnit("{report}"), metric.WithDescription("Usage reports taken in."))
	m.keys, errs[1] = meter.Int64Counter("partidor.collect.keys", metric.WithUnit("{key}"), metric.WithDescription("Key counters taken in."))
	m.dropped, errs[2] = meter.Int64Counter("partidor.collect.dropped", metric.WithUnit("{report}"), metric.WithDescription("Reports or keys dropped, by reason."))
	var silence metric.Float64ObservableGauge
	var instances metric.Int64ObservableGauge
	silence, errs[3] = meter.Float64ObservableGauge("partidor.collect.region.silence", metric.WithUnit("s"),
		metric.WithDescription("Time since a region was last heard; of regions that were removed or declared dead only while they speak."))
	instances, errs[4] = meter.Int64ObservableGauge("partidor.collect.region.instances", metric.WithUnit("{instance}"),
		metric.WithDescription("Instances of a region that are alive."))
	m.tokens, errs[5] = meter.Float64Counter("partidor.collect.tokens", metric.WithUnit("{token}"),
		metric.WithDescription("Tokens asked for in all regions, by whether they were admitted, as far as reports tell."))
	var torn metric.Int64ObservableGauge
	torn, errs[6] = meter.Int64ObservableGauge("partidor.split.torn", metric.WithUnit("{key}"),
		metric.WithDescription("Keys in use everywhere whose shares have made more, or less, than 100 % for over a minute."))
	if err := errors.Join(errs[:]...); err != nil {
		return nil, err
	}
	// What has not happened yet is 0 and not unknown, so that the first time is an increase.
	for _, reason := range m.reasons {
		m.dropped.Add(context.Background(), 0, reason)
	}
	m.counted(0, 0)
	_, err := meter.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		over, short := c.Torn()
		o.ObserveInt64(torn, int64(over), tornOver)
		o.ObserveInt64(torn, int64(short), tornShort)
		for _, r := range c.watched() {
			region := metric.WithAttributes(telemetry.AttributeRegion.String(r.Name))
			o.ObserveFloat64(silence, r.Silence.Seconds(), region)
			o.ObserveInt64(instances, int64(r.Instances), region)
		}
		return nil
	}, silence, instances, torn)
	return m, err
}

var (
	tornOver  = metric.WithAttributes(telemetry.AttributeKind.String("over"))
	tornShort = metric.WithAttributes(telemetry.AttributeKind.String("short"))
	admitted  = metric.WithAttributes(telemetry.AttributeOutcome.String("admitted"))
	refused   = metric.WithAttributes(telemetry.AttributeOutcome.String("refused"))
)

// counted notes an increase of a key's counters.
func (m *metrics) counted(admittedTokens, refusedTokens float64) {
	m.tokens.Add(context.Background(), admittedTokens, admitted)
	m.tokens.Add(context.Background(), refusedTokens, refused)
}

func (m *metrics) report(keys int) {
	m.reports.Add(context.Background(), 1)
	m.keys.Add(context.Background(), int64(keys))
}

func (m *metrics) drop(reason string, n int) {
	m.dropped.Add(context.Background(), int64(n), m.reasons[reason])
}
