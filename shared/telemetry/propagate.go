package telemetry

import (
	"context"
	"maps"
	"slices"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/propagation"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"
)

// Propagator carries W3C trace context and baggage, over HTTP as over NATS.
func Propagator() propagation.TextMapPropagator { return propagator }

var propagator = propagation.NewCompositeTextMapPropagator(propagation.TraceContext{}, propagation.Baggage{})

// Inject writes the trace that ctx is in into the headers of a NATS message and returns them; a nil header is made where
// there is something to write. A nats.Header is given and taken as it is; its type is not named here because the request
// path, which imports this package too, must not depend on NATS.
func Inject(ctx context.Context, h map[string][]string) map[string][]string {
	c := carrier{h}
	propagator.Inject(ctx, &c)
	return c.header
}

// Extract returns ctx inside the trace that the headers of a NATS message speak of, if any.
func Extract(ctx context.Context, h map[string][]string) context.Context {
	return propagator.Extract(ctx, &carrier{h})
}

// Sending and Processing describe the span of a message over NATS, by the semantic conventions for messaging.
func Sending(subject string) trace.SpanStartOption {
	return messaging(subject, "publish", semconv.MessagingOperationTypeSend)
}

// Processing is Sending's other side.
func Processing(subject string) trace.SpanStartOption {
	return messaging(subject, "process", semconv.MessagingOperationTypeProcess)
}

func messaging(subject, operation string, kind attribute.KeyValue) trace.SpanStartOption {
	return trace.WithAttributes(semconv.MessagingSystemKey.String("nats"), semconv.MessagingDestinationName(subject),
		semconv.MessagingOperationName(operation), kind)
}

// carrier is a propagation.TextMapCarrier over headers whose names keep their case, as those of NATS do.
type carrier struct{ header map[string][]string }

func (c *carrier) Get(key string) string {
	if v := c.header[key]; len(v) > 0 {
		return v[0]
	}
	return ""
}

func (c *carrier) Set(key, value string) {
	if c.header == nil {
		c.header = map[string][]string{}
	}
	c.header[key] = []string{value}
}

func (c *carrier) Keys() []string { return slices.Collect(maps.Keys(c.header)) }
