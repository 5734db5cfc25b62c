package app

import (
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"

	"partidor.dev/partidor/shared/telemetry"
)

// calls counts script calls to Redis: each carries many decisions.
type calls struct {
	took         metric.Float64Histogram
	size         metric.Int64Histogram
	well, failed []metric.RecordOption // made once: options made for each call would be allocations for each
}

func newCalls(meter metric.Meter) (*calls, error) {
	operation := []attribute.KeyValue{semconv.DBSystemNameRedis, semconv.DBOperationName("EVALSHA")}
	c := &calls{
		well:   []metric.RecordOption{metric.WithAttributeSet(attribute.NewSet(operation...))},
		failed: []metric.RecordOption{metric.WithAttributeSet(attribute.NewSet(append(operation, semconv.ErrorTypeOther)...))},
	}
	var err1, err2 error
	c.took, err1 = meter.Float64Histogram("db.client.operation.duration", metric.WithUnit("s"),
		metric.WithDescription("Duration of database client operations."), metric.WithExplicitBucketBoundaries(telemetry.LatencyBuckets...))
	c.size, err2 = meter.Int64Histogram("partidor.redis.batch.size", metric.WithUnit("{decision}"),
		metric.WithDescription("Decisions that one script call to Redis carried."), metric.WithExplicitBucketBoundaries(1, 2, 4, 8, 16, 32, 64, 128))
	return c, errors.Join(err1, err2)
}

func (c *calls) called(decisions int, took time.Duration, err error) {
	options := c.well
	if err != nil {
		options = c.failed
	}
	c.took.Record(context.Background(), took.Seconds(), options...)
	c.size.Record(context.Background(), int64(decisions))
}
