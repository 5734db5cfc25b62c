package bucket

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"
)

// described is what every span of a decision in Redis says alike.
var described = []attribute.KeyValue{semconv.DBSystemNameRedis, semconv.DBOperationName("EVALSHA"), semconv.DBStoredProcedureName("take")}

// describe names the asker's span, where it is recorded, after what is asked of Redis. The call itself has no span of its
// own: it belongs to many requests.
func describe(ctx context.Context) {
	if span := trace.SpanFromContext(ctx); span.IsRecording() {
		span.SetName("EVALSHA take")
		span.SetAttributes(described...)
	}
}

// describeBatch says how many decisions travelled together. The conventions know no batch of one.
func describeBatch(ctx context.Context, batch int) {
	if batch < 2 {
		return
	}
	if span := trace.SpanFromContext(ctx); span.IsRecording() {
		span.SetAttributes(semconv.DBOperationBatchSize(batch))
	}
}
