package home

import (
	"fmt"
	"testing"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"partidor.dev/partidor/shared/bucket"
	"partidor.dev/partidor/shared/limit"
	"partidor.dev/partidor/shared/telemetry"
	"partidor.dev/partidor/shared/testenv"
	"partidor.dev/partidor/shared/testenv/natsenv"
)

// A decision at another region's home is one trace on both sides of NATS; without a recorded decision there is none.
func TestConsumptionIsTraced(t *testing.T) {
	conn := natsenv.Start(t).Conn(t)
	places := deployment(t, conn, &limit.Rule{Capacity: 2, Refill: 1, PeriodSeconds: 5}, map[string]limit.Share{"eu": 700_000, "us": 300_000}, 5*time.Second)
	spans := tracetest.NewSpanRecorder()
	tracer := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans), sdktrace.WithSampler(sdktrace.ParentBased(sdktrace.NeverSample()))).Tracer("test")
	for _, p := range places {
		p.o.Tracer = tracer
	}
	us := places["us"]
	if _, err := us.take(t); err != nil {
		t.Fatal(err)
	}
	if n := len(spans.Ended()); n != 0 {
		t.Fatalf("%d spans without a recorded request", n)
	}

	parent := sdktrace.NewTracerProvider().Tracer("test")
	ctx, decision := parent.Start(t.Context(), "decision")
	m := us.rules.Load().Lookup(login.Tenant, login.Route)
	lim := bucket.Limit{Key: login, Rule: m.Rule, Revision: m.Revision, Base: m.Base, Floor: m.Floor, Cost: 1}
	if _, _, err := us.Take(ctx, time.Now(), &lim, m.Home); err != nil {
		t.Fatal(err)
	}
	testenv.Eventually(t, 10*time.Second, func() error {
		if n := len(spans.Ended()); n < 2 {
			return fmt.Errorf("%d spans", n)
		}
		return nil
	})
	serve, consume := spans.Ended()[0], spans.Ended()[1]
	if serve.Name() != "serve" {
		serve, consume = consume, serve
	}
	if consume.Parent().SpanID() != decision.SpanContext().SpanID() || serve.Parent().SpanID() != consume.SpanContext().SpanID() ||
		consume.SpanKind() != trace.SpanKindClient || serve.SpanKind() != trace.SpanKindServer {
		t.Errorf("%s in %s, %s in %s", consume.Name(), consume.Parent().SpanID(), serve.Name(), serve.Parent().SpanID())
	}
	got := map[string]string{}
	for _, kv := range consume.Attributes() {
		got[string(kv.Key)] = kv.Value.String()
	}
	for name, want := range map[string]string{
		"messaging.system": "nats", "messaging.destination.name": "partidor.v1.consume.eu", "messaging.operation.type": "send",
		string(telemetry.AttributePeer): "eu", string(telemetry.AttributeOutcome): "admitted",
	} {
		if got[name] != want {
			t.Errorf("%s = %q, want %q", name, got[name], want)
		}
	}
}
