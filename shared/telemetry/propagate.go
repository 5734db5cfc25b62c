package telemetry

import (
	"context"

	"github.com/nats-io/nats.go"
	"go.opentelemetry.io/otel/propagation"
)

// Propagator carries W3C trace context and baggage, over HTTP as over NATS.
func Propagator() propagation.TextMapPropagator { return propagator }

var propagator = propagation.NewCompositeTextMapPropagator(propagation.TraceContext{}, propagation.Baggage{})

// Inject writes the trace that ctx is in into the headers of a NATS message and returns them; a nil header is made where
// there is something to write.
func Inject(ctx context.Context, h nats.Header) nats.Header {
	c := natsCarrier{h}
	propagator.Inject(ctx, &c)
	return c.header
}

// Extract returns ctx inside the trace that the headers of a NATS message speak of, if any.
func Extract(ctx context.Context, h nats.Header) context.Context {
	return propagator.Extract(ctx, &natsCarrier{h})
}

// natsCarrier is a propagation.TextMapCarrier over NATS headers, whose names keep their case.
type natsCarrier struct{ header nats.Header }

func (c *natsCarrier) Get(key string) string { return c.header.Get(key) }

func (c *natsCarrier) Set(key, value string) {
	if c.header == nil {
		c.header = nats.Header{}
	}
	c.header.Set(key, value)
}

func (c *natsCarrier) Keys() []string {
	keys := make([]string, 0, len(c.header))
	for k := range c.header {
		keys = append(keys, k)
	}
	return keys
}
