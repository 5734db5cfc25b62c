package admit

import (
	"context"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"partidor.dev/partidor/shared/fallback"
	"partidor.dev/partidor/shared/limit"
	"partidor.dev/partidor/shared/telemetry"
)

const (
	outcomes = int(limit.Unable) + 1
	sources  = int(limit.SourceHome) + 1
	// stripes spread the counters of the request path over cache lines.
	stripes = 16
)

// metrics of the package, all declared here. Their series are bounded: outcome, source and reason, never a tenant.
//
// What counts per request is a plain atomic that the collector reads; only calls to Redis, a thousand times dearer, go
// through an instrument.
type metrics struct {
	decisions [stripes]struct {
		n [outcomes][sources]atomic.Int64
		_ [64]byte
	}
	spares  [outcomes]atomic.Int64
	shadows [outcomes]atomic.Int64
	unknown atomic.Int64 // debts that may or may not have been settled
	returns atomic.Int64
	// changes of breakers, by the state that they came to.
	changes [fallback.HalfOpen + 1]atomic.Int64

	calls     metric.Float64Histogram
	succeeded []metric.RecordOption // made once: an options slice per call would be an allocation
	broken    []metric.RecordOption
}

func newMetrics(meter metric.Meter, a *Admitter) (*metrics, error) {
	m := &metrics{
		succeeded: []metric.RecordOption{metric.WithAttributeSet(attribute.NewSet(telemetry.AttributeResult.String("ok")))},
		broken:    []metric.RecordOption{metric.WithAttributeSet(attribute.NewSet(telemetry.AttributeResult.String("error")))},
	}
	b := builder{meter: meter}
	m.calls = b.histogram("partidor.redis.duration", "s", "Time of one call to Redis as the request saw it.")
	decisions := b.counter("partidor.decisions", "{decision}", "Decisions by outcome and by the part that made them.")
	spared := b.counter("partidor.decisions.spared", "{decision}", "Refusals that the kill switch turned into admissions.")
	shadowed := b.counter("partidor.decisions.shadowed", "{decision}", "Requests that a rule in shadow mode would not have admitted.")
	unsettled := b.counter("partidor.fallback.unsettled", "{token}", "Tokens admitted without Redis whose settling got no answer; they are not settled again.")
	returned := b.counter("partidor.prefetch.returned", "{token}", "Tokens taken ahead that went back unused.")
	ahead := b.gauge("partidor.prefetch.outstanding", "{token}", "Tokens taken ahead and not yet spent.")
	changed := b.counter("partidor.breaker.changes", "{change}", "Changes of the breakers in front of Redis nodes, by the state they came to.")
	standing := b.gauge("partidor.breaker.nodes", "{node}", "Redis nodes by the state of the breaker in front of them.")
	degraded := b.gauge("partidor.degraded", "{node}", "Redis nodes without which this instance decides: 0 is well.")
	known := b.gauge("partidor.fallback.keys", "{key}", "Keys that the fallback remembers.")
	forgotten := b.counter("partidor.fallback.forgotten", "{key}", "Keys that the fallback forgot for want of room.")
	vanished := b.counter("partidor.buckets.vanished", "{bucket}", "Buckets found full in Redis that cannot have filled up: evicted, deleted or lost.")
	instances := b.gauge("partidor.instances", "{instance}", "Live instances among which the fallback divides a slice.")
	if b.err != nil {
		return nil, b.err
	}
	pairs := attributeSets()
	_, err := meter.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		for i := range outcomes {
			of := metric.WithAttributes(telemetry.AttributeOutcome.String(limit.Outcome(i).String()))
			for s := range sources {
				if n := m.count(i, s); n > 0 {
					o.ObserveInt64(decisions, n, pairs[i][s])
				}
			}
			if n := m.spares[i].Load(); n > 0 {
				o.ObserveInt64(spared, n, of)
			}
			if n := m.shadows[i].Load(); n > 0 {
				o.ObserveInt64(shadowed, n, of)
			}
		}
		o.ObserveInt64(unsettled, m.unknown.Load())
		o.ObserveInt64(returned, m.returns.Load())
		o.ObserveInt64(ahead, a.memory.outstanding())
		in := a.nodes.states()
		for state := range m.changes {
			of := metric.WithAttributes(telemetry.AttributeState.String(fallback.State(state).String()))
			o.ObserveInt64(changed, m.changes[state].Load(), of)
			o.ObserveInt64(standing, in[state], of)
		}
		o.ObserveInt64(degraded, in[fallback.Open]+in[fallback.HalfOpen])
		o.ObserveInt64(known, int64(a.local.Len()))
		o.ObserveInt64(forgotten, int64(a.local.Evicted()))
		o.ObserveInt64(vanished, int64(a.local.Vanished()))
		o.ObserveInt64(instances, int64(a.opts.Instances()))
		return nil
	}, decisions, spared, shadowed, unsettled, returned, ahead, changed, standing, degraded, known, forgotten, vanished, instances)
	return m, err
}

func attributeSets() (sets [outcomes][sources]metric.MeasurementOption) {
	for i := range sets {
		for s := range sets[i] {
			sets[i][s] = metric.WithAttributeSet(attribute.NewSet(
				telemetry.AttributeOutcome.String(limit.Outcome(i).String()), telemetry.AttributeSource.String(limit.Source(s).String())))
		}
	}
	return sets
}

func (m *metrics) decided(o limit.Outcome, s limit.Source) {
	m.decisions[rand.Uint32()%stripes].n[o][s].Add(1)
}

func (m *metrics) count(outcome, source int) (n int64) {
	for i := range m.decisions {
		n += m.decisions[i].n[outcome][source].Load()
	}
	return n
}

func (m *metrics) spared(o limit.Outcome)   { m.spares[o].Add(1) }
func (m *metrics) shadowed(o limit.Outcome) { m.shadows[o].Add(1) }
func (m *metrics) unsettled(tokens int64)   { m.unknown.Add(tokens) }
func (m *metrics) returned(tokens int64)    { m.returns.Add(tokens) }

func (m *metrics) asked(took time.Duration) {
	m.calls.Record(context.Background(), took.Seconds(), m.succeeded...)
}

func (m *metrics) failed(took time.Duration) {
	m.calls.Record(context.Background(), took.Seconds(), m.broken...)
}

// builder makes instruments and keeps the first error.
type builder struct {
	meter metric.Meter
	err   error
}

func (b *builder) keep(err error) {
	if b.err == nil {
		b.err = err
	}
}

func (b *builder) counter(name, unit, what string) metric.Int64ObservableCounter {
	c, err := b.meter.Int64ObservableCounter(name, metric.WithUnit(unit), metric.WithDescription(what))
	b.keep(err)
	return c
}

func (b *builder) gauge(name, unit, what string) metric.Int64ObservableGauge {
	g, err := b.meter.Int64ObservableGauge(name, metric.WithUnit(unit), metric.WithDescription(what))
	b.keep(err)
	return g
}

func (b *builder) histogram(name, unit, what string) metric.Float64Histogram {
	h, err := b.meter.Float64Histogram(name, metric.WithUnit(unit), metric.WithDescription(what),
		metric.WithExplicitBucketBoundaries(telemetry.LatencyBuckets...))
	b.keep(err)
	return h
}
