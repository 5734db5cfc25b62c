package telemetry

import (
	"context"
	"log/slog"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/metric"
	sdklog "go.opentelemetry.io/otel/sdk/log"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// export counts what becomes of spans and log records. The SDK's own queues drop silently when they are full, so the bound is
// kept, and what is beyond it counted, in front of them.
type export struct {
	queues []*queue
}

// queue is what one signal has ended and not yet sent or given up.
type queue struct {
	signal  string
	most    int
	waiting atomic.Int64

	sent, failed, dropped atomic.Int64
}

// queue of a signal, as long as the environment says.
func (e *export) queue(signal, variable string, most int) *queue {
	if n, err := strconv.Atoi(os.Getenv(variable)); err == nil && n > 0 {
		most = n
	}
	q := &queue{signal: signal, most: most}
	e.queues = append(e.queues, q)
	return q
}

func (e *export) observe(meter metric.Meter) error {
	items, err := meter.Int64ObservableCounter("partidor.telemetry.exported", metric.WithUnit("{item}"),
		metric.WithDescription("Spans and log records by what became of them: sent, refused by the collector, dropped because the queue was full."))
	if err != nil {
		return err
	}
	waiting, err := meter.Int64ObservableGauge("partidor.telemetry.waiting", metric.WithUnit("{item}"),
		metric.WithDescription("Spans and log records that wait to be sent."))
	if err != nil {
		return err
	}
	_, err = meter.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		for _, q := range e.queues {
			signal := AttributeSignal.String(q.signal)
			for result, n := range map[string]*atomic.Int64{"sent": &q.sent, "failed": &q.failed, "dropped": &q.dropped} {
				o.ObserveInt64(items, n.Load(), metric.WithAttributes(signal, AttributeResult.String(result)))
			}
			o.ObserveInt64(waiting, q.waiting.Load(), metric.WithAttributes(signal))
		}
		return nil
	}, items, waiting)
	return err
}

// enter takes a place in the queue, if there is one.
func (q *queue) enter() bool {
	if q.waiting.Add(1) > int64(q.most) {
		q.waiting.Add(-1)
		q.dropped.Add(1)
		return false
	}
	return true
}

// left frees the places of n items that were handed to the exporter.
func (q *queue) left(n int, err error) {
	q.waiting.Add(-int64(n))
	if err != nil {
		q.failed.Add(int64(n))
		return
	}
	q.sent.Add(int64(n))
}

// boundedSpans passes on what there is room for.
type boundedSpans struct {
	sdktrace.SpanProcessor
	queue *queue
}

func (b boundedSpans) OnEnd(s sdktrace.ReadOnlySpan) {
	if s.SpanContext().IsSampled() && b.queue.enter() {
		b.SpanProcessor.OnEnd(s)
	}
}

type countedSpans struct {
	sdktrace.SpanExporter
	queue *queue
}

func (c countedSpans) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	err := c.SpanExporter.ExportSpans(ctx, spans)
	c.queue.left(len(spans), err)
	return err
}

// boundedRecords passes on what there is room for.
type boundedRecords struct {
	sdklog.Processor
	queue *queue
}

func (b boundedRecords) OnEmit(ctx context.Context, r *sdklog.Record) error {
	if !b.queue.enter() {
		return nil
	}
	return b.Processor.OnEmit(ctx, r)
}

type countedRecords struct {
	sdklog.Exporter
	queue *queue
}

func (c countedRecords) Export(ctx context.Context, records []sdklog.Record) error {
	err := c.Exporter.Export(ctx, records)
	c.queue.left(len(records), err)
	return err
}

// complainEvery bounds the log lines about a collector that is away.
const complainEvery = time.Minute

// complaints logs what OpenTelemetry could not do: a line a minute at most, which tells how many were left out.
type complaints struct {
	logger *slog.Logger

	mu      sync.Mutex
	last    time.Time
	leftOut int
}

// Handle implements otel.ErrorHandler.
func (c *complaints) Handle(err error) {
	if leftOut, ok := c.due(time.Now()); ok { // not under the lock: the line may be exported, too
		c.logger.Warn("telemetry could not be exported", "error", err, "left_out", leftOut)
	}
}

func (c *complaints) due(now time.Time) (leftOut int, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.last.IsZero() && now.Sub(c.last) < complainEvery {
		c.leftOut++
		return 0, false
	}
	leftOut, c.last, c.leftOut = c.leftOut, now, 0
	return leftOut, true
}
