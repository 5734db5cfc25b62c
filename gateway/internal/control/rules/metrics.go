package rules

import (
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"partidor.dev/partidor/shared/telemetry"
)

// metrics of this package. Series are bounded by tables and results; no tenant, route or row is an attribute.
type metrics struct {
	reads    metric.Int64Counter
	duration metric.Float64Histogram
	faults   metric.Int64Counter
}

func newMetrics(meter metric.Meter, l *Loader) (*metrics, error) {
	m := new(metrics)
	var errs [10]error
	m.reads, errs[0] = meter.Int64Counter("partidor.rules.reads", metric.WithUnit("{read}"), metric.WithDescription("Reads of the rules' source, by result."))
	m.duration, errs[1] = meter.Float64Histogram("partidor.rules.read.duration", metric.WithUnit("s"), metric.WithDescription("Duration of one read."),
		metric.WithExplicitBucketBoundaries(0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30))
	m.faults, errs[2] = meter.Int64Counter("partidor.rules.faults", metric.WithUnit("{row}"),
		metric.WithDescription("Rows refused when read, by table; the last good state of each stays in force."))
	var age, stale, lag, revision, epoch, held metric.Observable
	age, errs[3] = meter.Float64ObservableGauge("partidor.snapshot.age", metric.WithUnit("s"),
		metric.WithDescription("Time since the source last confirmed that nothing newer exists."))
	stale, errs[4] = meter.Int64ObservableGauge("partidor.snapshot.stale", metric.WithUnit("{snapshot}"), metric.WithDescription("1 while serving by a snapshot read from disk."))
	lag, errs[5] = meter.Int64ObservableGauge("partidor.rules.revision.lag", metric.WithUnit("{revision}"),
		metric.WithDescription("Revisions announced but not yet in force; 0 when up to date."))
	revision, errs[6] = meter.Int64ObservableGauge("partidor.rules.revision", metric.WithUnit("{revision}"), metric.WithDescription("Number of the revision in force."))
	epoch, errs[7] = meter.Int64ObservableGauge("partidor.rules.epoch", metric.WithUnit("{epoch}"), metric.WithDescription("Ledger epoch of the revision in force."))
	held, errs[8] = meter.Int64ObservableGauge("partidor.snapshot.entries", metric.WithUnit("{entry}"), metric.WithDescription("Entries of the snapshot, by kind."))
	if err := errors.Join(errs[:]...); err != nil {
		return nil, err
	}
	_, err := meter.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		s, snap := l.Status(), l.o.Holder.Load()
		if !s.ConfirmedAt.IsZero() {
			o.ObserveFloat64(age.(metric.Float64Observable), time.Since(s.ConfirmedAt).Seconds())
		}
		integer := func(i metric.Observable, v int64, attrs ...metric.ObserveOption) {
			o.ObserveInt64(i.(metric.Int64Observable), v, attrs...)
		}
		integer(stale, truth(s.Stale))
		integer(lag, behind(s))
		integer(revision, s.Revision.Number)
		integer(epoch, s.Revision.Epoch)
		c := snap.Counts()
		integer(held, int64(c.Rules), kindRules)
		integer(held, int64(c.Tenants), kindTenants)
		integer(held, int64(c.APIKeys), kindKeys)
		integer(held, int64(c.Moved), kindMoved)
		return nil
	}, age, stale, lag, revision, epoch, held)
	return m, err
}

var (
	kindRules   = metric.WithAttributes(telemetry.AttributeKind.String("rule"))
	kindTenants = metric.WithAttributes(telemetry.AttributeKind.String("tenant"))
	kindKeys    = metric.WithAttributes(telemetry.AttributeKind.String("api_key"))
	kindMoved   = metric.WithAttributes(telemetry.AttributeKind.String("moved"))
	resultOK    = metric.WithAttributes(telemetry.AttributeResult.String("ok"))
	resultError = metric.WithAttributes(telemetry.AttributeResult.String("error"))
)

// behind is the number of revisions announced but not in force; across epochs their numbers cannot be subtracted.
func behind(s Status) int64 {
	switch {
	case !s.Announced.Newer(s.Revision):
		return 0
	case s.Announced.Epoch != s.Revision.Epoch:
		return max(1, s.Announced.Number)
	}
	return s.Announced.Number - s.Revision.Number
}

func truth(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

func (m *metrics) read(ctx context.Context, d time.Duration, err error) {
	result := resultOK
	if err != nil {
		result = resultError
	}
	m.reads.Add(ctx, 1, result)
	m.duration.Record(ctx, d.Seconds(), result)
}

func (m *metrics) faulty(ctx context.Context, faults []Fault) {
	for _, f := range faults {
		m.faults.Add(ctx, 1, metric.WithAttributes(telemetry.AttributeKind.String(f.Table)))
	}
}

// describe says on a span what a read has brought.
func (l *Loader) describe(span trace.Span, inc *Increment, err error) {
	if !span.IsRecording() {
		return
	}
	span.SetAttributes(attribute.String("partidor.rules.source", l.o.Source.Name()))
	if err != nil {
		span.SetStatus(codes.Error, err.Error())
		return
	}
	span.SetAttributes(
		telemetry.AttributeRevision.String(inc.Reached.String()), attribute.Bool("partidor.rules.whole", inc.Whole),
		attribute.Int("partidor.rules.changed", len(inc.Rules)), attribute.Int("partidor.rules.faults", len(inc.Faults)),
	)
}
