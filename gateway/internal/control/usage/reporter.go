package usage

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"

	"go.opentelemetry.io/otel/metric"

	"partidor.dev/partidor/shared/wire"
)

// Publisher sends one message, fire and forget; a *nats.Conn is one. IsConnected tells whether anybody would hear it now.
type Publisher interface {
	Publish(subject string, data []byte) error
	IsConnected() bool
}

// Nobody is a Publisher for a gateway without NATS: its table is kept, for people and metrics, and told to no one.
type Nobody struct{}

// Publish does nothing.
func (Nobody) Publish(string, []byte) error { return nil }

// IsConnected is true: the table is to be gone through, so that idle keys leave it.
func (Nobody) IsConnected() bool { return true }

// Identity is who reports.
type Identity struct {
	Region, Instance string
	// Started is when the process began.
	Started time.Time
}

func (i Identity) header() wire.Header {
	return wire.Header{Region: i.Region, Instance: i.Instance, Started: i.Started.UnixMilli()}
}

// Reporter publishes a table every interval.
type Reporter struct {
	table    *Table
	conn     Publisher
	who      Identity
	interval time.Duration
	logger   *slog.Logger

	sequence uint64
	failed   bool
}

// NewReporter publishes what table counts.
func NewReporter(table *Table, conn Publisher, who Identity, interval time.Duration, logger *slog.Logger, meter metric.Meter) (*Reporter, error) {
	r := &Reporter{table: table, conn: conn, who: who, interval: interval, logger: logger}
	return r, r.observe(meter)
}

func (r *Reporter) observe(meter metric.Meter) error {
	keys, err1 := meter.Int64ObservableGauge("partidor.usage.keys", metric.WithUnit("{key}"), metric.WithDescription("Keys that this instance counts."))
	dropped, err2 := meter.Int64ObservableCounter("partidor.usage.dropped", metric.WithUnit("{decision}"),
		metric.WithDescription("Decisions left out of usage reports because the table was full."))
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	_, err := meter.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		o.ObserveInt64(keys, int64(r.table.Keys()))
		o.ObserveInt64(dropped, int64(r.table.Dropped()))
		return nil
	}, keys, dropped)
	return err
}

// Run reports until ctx ends, and then once more.
func (r *Reporter) Run(ctx context.Context) error {
	// Instances that start together do not report together.
	first := time.NewTimer(rand.N(r.interval) + 1)
	defer first.Stop()
	select {
	case <-ctx.Done():
		r.report(ctx)
		return nil
	case <-first.C:
	}
	tick := time.NewTicker(r.interval)
	defer tick.Stop()
	for {
		r.report(ctx)
		select {
		case <-ctx.Done():
			r.report(ctx)
			return nil
		case <-tick.C:
		}
	}
}

// report sends what has changed. While nobody is connected nothing is sent and nothing is lost: counters are cumulative.
func (r *Reporter) report(ctx context.Context) {
	if !r.conn.IsConnected() {
		return
	}
	age := time.Since(r.who.Started)
	var keys []wire.KeyUsage
	r.table.Report(age, func(k wire.KeyUsage) { keys = append(keys, k) })
	if err := r.send(age, keys); err != nil {
		if !r.failed {
			r.logger.ErrorContext(ctx, "usage cannot be reported, the counters go on", "error", err)
		}
		r.failed = true
		return
	}
	r.failed = false
}

func (r *Reporter) send(age time.Duration, keys []wire.KeyUsage) error {
	chunks := wire.Chunks(keys)
	for part, chunk := range chunks {
		r.sequence++
		u := wire.Usage{Header: r.who.header(), ElapsedMillis: age.Milliseconds(), Keys: chunk, Dropped: r.table.Dropped()}
		u.Sequence, u.Part, u.Parts = r.sequence, part+1, len(chunks)
		data, err := wire.Encode(&u)
		if err != nil {
			return err
		}
		if err := r.conn.Publish(wire.SubjectUsage(r.who.Region), data); err != nil {
			return fmt.Errorf("publish usage: %w", err)
		}
	}
	return nil
}
