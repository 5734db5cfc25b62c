package hot

import (
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"testing"

	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
	nooptrace "go.opentelemetry.io/otel/trace/noop"

	"partidor.dev/partidor/gateway/internal/hot/admit"
	"partidor.dev/partidor/gateway/internal/hot/identify"
	"partidor.dev/partidor/shared/limit"
)

// nullWriter is a ResponseWriter that costs next to nothing.
type nullWriter struct{ h http.Header }

func (w *nullWriter) Header() http.Header         { return w.h }
func (w *nullWriter) Write(p []byte) (int, error) { return len(p), nil }
func (w *nullWriter) WriteHeader(int)             {}

func benchUpstream(b *testing.B) string {
	b.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, "ok") }))
	b.Cleanup(s.Close)
	return s.URL
}

func benchHandler(b *testing.B, d limit.Decision) *Handler {
	b.Helper()
	c := fixtureConfig(benchUpstream(b))
	c.SetDefaults()
	admitter := &fakeAdmitter{answer: func(r admit.Request) limit.Decision {
		d.Key = limit.Key{Tenant: r.Tenant, Route: r.Route}
		return d
	}}
	tenants := fakeTenants{"k-t1": "t1"}
	h, err := New(Options{Config: c, Admitter: admitter, Tenants: func() identify.Tenants { return tenants }, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(h.Close)
	return h
}

func benchRequest() *http.Request {
	r := httptest.NewRequest("GET", "/v1/items/12345?x=1", nil)
	r.Header = http.Header{"X-Api-Key": {"k-t1"}, "Accept": {"*/*"}, "User-Agent": {"bench"}}
	return r
}

func run(b *testing.B, h http.Handler) {
	w, r := &nullWriter{h: http.Header{}}, benchRequest()
	b.ReportAllocs()
	for b.Loop() {
		clear(w.h)
		h.ServeHTTP(w, r)
	}
}

// BenchmarkRefused is everything up to a 429.
func BenchmarkRefused(b *testing.B) {
	run(b, benchHandler(b, limit.Decision{Outcome: limit.Refused, Rule: &limit.Rule{Capacity: 200, Refill: 100, PeriodSeconds: 1}, Share: limit.Whole, RetryAfter: 1}))
}

// BenchmarkForward and BenchmarkPlainProxy differ by what the gateway does beyond httputil.ReverseProxy; both have the same
// upstream over loopback, whose cost is in both.
func BenchmarkForward(b *testing.B) {
	run(b, benchHandler(b, limit.Decision{Rule: &limit.Rule{Capacity: 200, Refill: 100, PeriodSeconds: 1}, Share: limit.Whole, Remaining: 100, Tokens: 100}))
}

// BenchmarkPlainProxy is the measure of BenchmarkForward.
func BenchmarkPlainProxy(b *testing.B) {
	target, err := url.Parse(benchUpstream(b))
	if err != nil {
		b.Fatal(err)
	}
	run(b, &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target); r.SetXForwarded() }})
}

// BenchmarkTelemetry is what a request costs up to a 429, with metrics, and with tracing off, on and sampled out, on and
// sampled. The differences are what tracing costs.
func BenchmarkTelemetry(b *testing.B) {
	exported := sdktrace.WithBatcher(tracetest.NewNoopExporter())
	for name, tracers := range map[string]trace.TracerProvider{
		"off":        nooptrace.NewTracerProvider(),
		"sampledout": sdktrace.NewTracerProvider(exported, sdktrace.WithSampler(sdktrace.ParentBased(sdktrace.TraceIDRatioBased(0)))),
		"sampled":    sdktrace.NewTracerProvider(exported),
	} {
		b.Run(name, func(b *testing.B) {
			h := benchHandler(b, limit.Decision{Outcome: limit.Refused, Rule: &limit.Rule{Capacity: 200, Refill: 100, PeriodSeconds: 1}, Share: limit.Whole, RetryAfter: 1})
			var err error
			h.telemetry, err = newTelemetry(tracers.Tracer("bench"), sdkmetric.NewMeterProvider(sdkmetric.WithReader(sdkmetric.NewManualReader())).Meter("bench"))
			if err != nil {
				b.Fatal(err)
			}
			run(b, h)
		})
	}
}
