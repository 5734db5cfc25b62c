package telemetry_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"partidor.dev/partidor/shared/telemetry"
	"partidor.dev/partidor/shared/testenv/otlpenv"
)

func start(t *testing.T, o telemetry.Options) *telemetry.Telemetry {
	t.Helper()
	tel, err := telemetry.Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tel.Shutdown(context.Background()) })
	return tel
}

func TestLogLinesCarryTheTrace(t *testing.T) {
	var out bytes.Buffer
	tel := start(t, telemetry.Options{Service: "gateway", Region: "eu", LogOutput: &out})
	ctx := telemetry.Extract(context.Background(), nats.Header{
		"traceparent": {"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"},
	})
	tel.Logger.With("a", 1).InfoContext(ctx, "hello")
	tel.Logger.DebugContext(ctx, "below the level")

	var line map[string]any
	if err := json.Unmarshal(out.Bytes(), &line); err != nil {
		t.Fatalf("not one JSON line: %v\n%s", err, &out)
	}
	for key, want := range map[string]any{
		"msg": "hello", "service": "gateway", "region": "eu", "a": 1.0,
		"trace_id": "0af7651916cd43dd8448eb211c80319c", "span_id": "b7ad6b7169203331",
	} {
		if line[key] != want {
			t.Errorf("%s = %v, want %v", key, line[key], want)
		}
	}
}

func TestNothingIsExportedUnlessAsked(t *testing.T) {
	tel := start(t, telemetry.Options{Service: "gateway"})
	_, span := tel.TracerProvider.Tracer("test").Start(context.Background(), "work")
	if span.IsRecording() {
		t.Error("spans are recorded although no exporter is configured")
	}
}

func TestSpansReachTheCollectorAndJoinOverNATS(t *testing.T) {
	otlp := otlpenv.Start(t)
	t.Setenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", otlp.Endpoint)
	t.Setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")
	t.Setenv("OTEL_BSP_SCHEDULE_DELAY", "10")
	t.Setenv("OTEL_RESOURCE_ATTRIBUTES", "partidor.region=us")
	tel := start(t, telemetry.Options{Service: "gateway", Region: "eu"})
	tracer := tel.TracerProvider.Tracer("test")

	ctx, cycle := tracer.Start(context.Background(), "cycle")
	header := telemetry.Inject(ctx, nil)
	_, transfer := tracer.Start(telemetry.Extract(context.Background(), header), "transfer", trace.WithSpanKind(trace.SpanKindConsumer))
	transfer.End()
	cycle.End()

	wait, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if !otlp.Await(wait, func(spans []otlpenv.Span) bool {
		return len(spans) == 2 && string(spans[0].TraceId) == string(spans[1].TraceId) &&
			spans[0].Resource["service.name"] == "gateway" && spans[0].Resource["partidor.region"] == "us"
	}) {
		t.Fatal("no joined trace arrived")
	}
}

func TestMetricsAreScraped(t *testing.T) {
	tel := start(t, telemetry.Options{Service: "gateway"})
	counter, err := tel.MeterProvider.Meter("test").Int64Counter("partidor.things")
	if err != nil {
		t.Fatal(err)
	}
	counter.Add(t.Context(), 3)
	rec := httptest.NewRecorder()
	tel.MetricsHandler().ServeHTTP(rec, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	for _, want := range []string{"partidor_things_total 3", "go_goroutine", "process_open_fds", `service_name="gateway"`} {
		if !strings.Contains(rec.Body.String(), want) {
			t.Errorf("metrics lack %q", want)
		}
	}
}

func TestStartRefusesAnUnknownExporter(t *testing.T) {
	t.Setenv("OTEL_TRACES_EXPORTER", "carrier-pigeon")
	if _, err := telemetry.Start(t.Context(), telemetry.Options{Service: "gateway"}); err == nil {
		t.Fatal("accepted")
	}
}

// A collector that takes connections but never answers must not keep a service from stopping.
func TestShutdownIsBounded(t *testing.T) {
	over := make(chan struct{})
	hole := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-over }))
	t.Cleanup(func() { close(over); hole.Close() })
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", hole.URL)
	tel, err := telemetry.Start(t.Context(), telemetry.Options{Service: "gateway", LogOutput: &bytes.Buffer{}, LogLevel: slog.LevelError})
	if err != nil {
		t.Fatal(err)
	}
	_, span := tel.TracerProvider.Tracer("test").Start(context.Background(), "work")
	span.End()
	begin := time.Now()
	_ = tel.Shutdown(context.Background())
	if took := time.Since(begin); took > 8*time.Second {
		t.Fatalf("shutdown took %s", took)
	}
}

// A collector that takes nothing keeps nobody waiting: what the queue holds waits, what it does not is dropped, and both are
// counted. (Case: exporter slow)
func TestFullQueueDropsAndCounts(t *testing.T) {
	over := make(chan struct{})
	hole := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-over }))
	t.Cleanup(func() { close(over); hole.Close() })
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", hole.URL)
	t.Setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf")
	t.Setenv("OTEL_METRICS_EXPORTER", "none")
	t.Setenv("OTEL_BSP_MAX_QUEUE_SIZE", "16")
	t.Setenv("OTEL_BLRP_MAX_QUEUE_SIZE", "8")
	tel, err := telemetry.Start(t.Context(), telemetry.Options{Service: "gateway", LogOutput: &bytes.Buffer{}})
	if err != nil {
		t.Fatal(err)
	}
	tracer := tel.TracerProvider.Tracer("test")
	for range 100 {
		_, span := tracer.Start(t.Context(), "work")
		span.End()
		tel.Logger.Info("line")
	}
	rec := httptest.NewRecorder()
	tel.MetricsHandler().ServeHTTP(rec, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	for _, want := range []string{
		`partidor_telemetry_exported_total{partidor_result="dropped",partidor_signal="traces"} 84`,
		`partidor_telemetry_waiting{partidor_signal="traces"} 16`,
		`partidor_telemetry_exported_total{partidor_result="dropped",partidor_signal="logs"} 92`,
		`partidor_telemetry_waiting{partidor_signal="logs"} 8`,
	} {
		if !strings.Contains(rec.Body.String(), want) {
			t.Errorf("metrics lack %s", want)
		}
	}
}

// What cannot be exported is told once a minute, not once a batch.
func TestComplaintsAreRare(t *testing.T) {
	log := &bytes.Buffer{}
	start(t, telemetry.Options{Service: "gateway", LogOutput: log})
	for range 100 {
		otel.Handle(errors.New("nobody listens"))
	}
	if n := strings.Count(log.String(), "nobody listens"); n != 1 {
		t.Errorf("%d lines for 100 failures", n)
	}
}

// Series say where they come from, and in OpenMetrics lead to a trace.
func TestExemplarsAndRegion(t *testing.T) {
	otlp := otlpenv.Start(t)
	t.Setenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", otlp.Endpoint)
	t.Setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")
	tel := start(t, telemetry.Options{Service: "gateway", Region: "eu"})
	took, err := tel.MeterProvider.Meter("test").Float64Histogram("partidor.took", metric.WithUnit("s"))
	if err != nil {
		t.Fatal(err)
	}
	ctx, span := tel.TracerProvider.Tracer("test").Start(t.Context(), "work")
	took.Record(ctx, 1)
	span.End()
	rec, r := httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/metrics", nil)
	r.Header.Set("Accept", "application/openmetrics-text")
	tel.MetricsHandler().ServeHTTP(rec, r)
	for _, want := range []string{`partidor_took_seconds_count{partidor_region="eu"} 1`, `trace_id="` + span.SpanContext().TraceID().String()} {
		if !strings.Contains(rec.Body.String(), want) {
			t.Errorf("metrics lack %s", want)
		}
	}
}
