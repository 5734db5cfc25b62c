package admit

import (
	"context"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"partidor.dev/partidor/shared/bucket"
	"partidor.dev/partidor/shared/limit"
	"partidor.dev/partidor/shared/telemetry"
)

func attributes(s sdktrace.ReadOnlySpan) map[attribute.Key]string {
	m := make(map[attribute.Key]string)
	for _, kv := range s.Attributes() {
		m[kv.Key] = kv.Value.String()
	}
	return m
}

// request -> decision -> redis, where the request is recorded.
func TestSpansOfADecision(t *testing.T) {
	spans := tracetest.NewSpanRecorder()
	tracer := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans)).Tracer("test")
	store := newFakeStore()
	a := newAdmitter(t, Options{Rules: rules(t, set("t1", "items", 10, 1)), Store: store, Tracer: tracer})
	ctx, request := tracer.Start(t.Context(), "request")
	a.Admit(ctx, time.Now(), Request{Tenant: "t1", Route: "items", Cost: 1})
	store.set(errAway, 0)
	a.Admit(ctx, time.Now(), Request{Tenant: "t1", Route: "items", Cost: 1})
	request.End()

	ended := spans.Ended()
	if len(ended) != 5 {
		t.Fatalf("%d spans, want two decisions with a call each, and the request", len(ended))
	}
	for i := 0; i < 4; i += 2 {
		redis, decision := ended[i], ended[i+1]
		if redis.Name() != "take" || decision.Name() != "decision" || redis.Parent().SpanID() != decision.SpanContext().SpanID() ||
			decision.Parent().SpanID() != request.SpanContext().SpanID() {
			t.Errorf("spans %s in %s", redis.Name(), decision.Name())
		}
		degraded := i > 0
		if (redis.Status().Code == codes.Error) != degraded {
			t.Errorf("redis's span: %+v", redis.Status())
		}
		got := attributes(decision)
		if want := map[bool]string{false: "redis", true: "fallback"}[degraded]; got[telemetry.AttributeSource] != want || got[telemetry.AttributeOutcome] != "allowed" ||
			got["partidor.cost"] != "1" || got[telemetry.AttributeRevision] == "" || got[telemetry.AttributeShare] == "" ||
			got["partidor.remaining"] == "" || got["partidor.retry_after"] == "" ||
			got[telemetry.AttributeDegraded] != map[bool]string{false: "false", true: "true"}[degraded] {
			t.Errorf("attributes %v", got)
		}
	}
}

func TestARequestThatIsNotSampledMakesNoSpans(t *testing.T) {
	spans := tracetest.NewSpanRecorder()
	tracer := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans), sdktrace.WithSampler(sdktrace.NeverSample())).Tracer("test")
	a, now := hotAdmitter(t, 1)
	a.opts.Tracer = tracer
	ctx, request := tracer.Start(t.Context(), "request")
	defer request.End()
	wantNoAllocs(t, func() { a.Admit(ctx, now, Request{Tenant: "t1", Route: "items", Cost: 1}) })
	if n := len(spans.Ended()); n != 0 {
		t.Errorf("%d spans", n)
	}
}

// series is the value of every series of an instrument, by its attributes.
func series(t *testing.T, reader sdkmetric.Reader, name string) map[string]int64 {
	t.Helper()
	var all metricdata.ResourceMetrics
	if err := reader.Collect(context.Background(), &all); err != nil {
		t.Fatal(err)
	}
	got := make(map[string]int64)
	for _, scope := range all.ScopeMetrics {
		for _, m := range scope.Metrics {
			if m.Name != name {
				continue
			}
			switch data := m.Data.(type) {
			case metricdata.Sum[int64]:
				for _, p := range data.DataPoints {
					got[p.Attributes.Encoded(attribute.DefaultEncoder())] = p.Value
				}
			case metricdata.Gauge[int64]:
				for _, p := range data.DataPoints {
					got[p.Attributes.Encoded(attribute.DefaultEncoder())] = p.Value
				}
			}
		}
	}
	return got
}

func TestMetrics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reader := sdkmetric.NewManualReader()
		meter := sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader)).Meter("test")
		store := newFakeStore()
		a := newAdmitter(t, Options{Rules: rules(t, set("t1", "items", 2, 1)), Store: store, Meter: meter, Instances: func() int { return 3 }})
		for range 5 {
			admit(t, a)
		}
		decisions := series(t, reader, "partidor.decisions")
		want := map[string]int64{"partidor.outcome=allowed,partidor.source=redis": 2, "partidor.outcome=refused,partidor.source=denied-cache": 3}
		for k, v := range want {
			if decisions[k] != v {
				t.Errorf("%s = %d, want %d", k, decisions[k], v)
			}
		}
		if len(decisions) != len(want) {
			t.Errorf("series %v", decisions)
		}
		if v := series(t, reader, "partidor.degraded")[""]; v != 0 {
			t.Errorf("degraded = %d", v)
		}
		store.set(errAway, 0)
		time.Sleep(time.Second)
		for i := range 30 {
			a.Admit(t.Context(), time.Now(), Request{Tenant: "t1", Route: "items", Cost: int64(1 + i%2)})
		}
		if v := series(t, reader, "partidor.degraded")[""]; v != 1 {
			t.Errorf("degraded = %d, want 1", v)
		}
		if v := series(t, reader, "partidor.breaker.nodes"); v["partidor.state=open"] != 1 || v["partidor.state=closed"] != 0 || len(v) != 3 {
			t.Errorf("breakers stand at %v", v)
		}
		if v := series(t, reader, "partidor.breaker.changes"); v["partidor.state=open"] != 1 || len(v) != 3 {
			t.Errorf("breakers changed to %v", v)
		}
		if v := series(t, reader, "partidor.instances")[""]; v != 3 {
			t.Errorf("instances = %d, want 3", v)
		}
	})
}

// echo is a store that answers at once and allocates nothing.
type echo struct{}

func (echo) Take(_ context.Context, limits []bucket.Limit) (limit.Decision, error) {
	return limit.Decision{Key: limits[0].Key, Rule: limits[0].Rule, Share: limits[0].Base, Remaining: 5, Tokens: 5}, nil
}

// What the path to Redis costs besides the store: a deadline, a breaker, the level kept for the fallback, a histogram.
func TestAskingAllocatesNothingOfItsOwn(t *testing.T) {
	for name, away := range map[string]bool{"redis": false, "fallback": true} {
		t.Run(name, func(t *testing.T) {
			meter := sdkmetric.NewMeterProvider(sdkmetric.WithReader(sdkmetric.NewManualReader())).Meter("test")
			o := Options{Rules: rules(t, set("t1", "items", 1_000_000, 1)), Store: echo{}, Counter: nothing{}, Meter: meter}
			if away {
				store := newFakeStore()
				store.set(errAway, 0)
				o.Store = store
			}
			a := newAdmitter(t, o)
			ctx, now, req := t.Context(), time.Now(), Request{Tenant: "t1", Route: "items", Cost: 1}
			for range 50 {
				a.Admit(ctx, now, req)
			}
			if a.Degraded() != away {
				t.Fatalf("degraded %v", a.Degraded())
			}
			wantNoAllocs(t, func() { a.Admit(ctx, now, req) })
		})
	}
}

type nothing struct{}

func (nothing) Count(limit.Key, int64, bool, limit.Decision) {}

func BenchmarkAsk(b *testing.B) {
	a := newAdmitter(b, Options{Rules: rules(b, set("t1", "items", 1_000_000, 1)), Store: echo{}})
	ctx, now, req := b.Context(), time.Now(), Request{Tenant: "t1", Route: "items", Cost: 1}
	b.ReportAllocs()
	used := cpuTime(b)
	for b.Loop() {
		a.Admit(ctx, now, req)
	}
	b.ReportMetric(float64((cpuTime(b)-used).Nanoseconds())/float64(b.N), "cpu-ns/op")
}

// Case request-path 110: 100,000 tenants make no series, whatever becomes of their requests.
func TestManyTenantsMakeNoSeries(t *testing.T) {
	reader := sdkmetric.NewManualReader()
	meter := sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader)).Meter("test")
	a := newAdmitter(t, Options{Rules: rules(t, set("*", "items", 1, 1)), Store: echo{}, Meter: meter})
	now := time.Now()
	for i := range 100_000 {
		a.Admit(t.Context(), now, Request{Tenant: "tenant-" + strconv.Itoa(i), Route: "items", Cost: 1})
	}
	var all metricdata.ResourceMetrics
	if err := reader.Collect(t.Context(), &all); err != nil {
		t.Fatal(err)
	}
	points := 0
	for _, m := range all.ScopeMetrics[0].Metrics {
		switch data := m.Data.(type) {
		case metricdata.Sum[int64]:
			points += len(data.DataPoints)
		case metricdata.Gauge[int64]:
			points += len(data.DataPoints)
		case metricdata.Histogram[float64]:
			points += len(data.DataPoints)
		default:
			t.Errorf("%s: unknown kind %T", m.Name, m.Data)
		}
	}
	if n := series(t, reader, "partidor.decisions")["partidor.outcome=allowed,partidor.source=redis"]; n != 100_000 {
		t.Errorf("%d admitted, want one of each tenant", n)
	}
	if points > 40 {
		t.Errorf("%d series", points)
	}
}
