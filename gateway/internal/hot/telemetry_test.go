package hot

import (
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/codes"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
)

// observed is a fixture whose spans and metrics can be read.
func observed(t *testing.T, f *fixture) (*tracetest.InMemoryExporter, *sdkmetric.ManualReader) {
	t.Helper()
	spans, reader := tracetest.NewInMemoryExporter(), sdkmetric.NewManualReader()
	tel, err := newTelemetry(
		sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans)).Tracer("test"),
		sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader)).Meter("test"))
	if err != nil {
		t.Fatal(err)
	}
	f.Handler.telemetry = tel
	return spans, reader
}

func attributesOf(s tracetest.SpanStub) map[string]string {
	m := map[string]string{}
	for _, kv := range s.Attributes {
		m[string(kv.Key)] = kv.Value.String()
	}
	return m
}

// The client's trace goes through: its span is the parent of ours, ours of the attempt's, the attempt's of the upstream's.
func TestTraceGoesThrough(t *testing.T) {
	f := newFixture(t, nil, nil)
	spans, _ := observed(t, f)
	const traceID, parent = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
	f.do(t, "GET", "/v1/items/7?token=hidden", http.Header{"X-Api-Key": {"k-t1"}, "Traceparent": {"00-" + traceID + "-" + parent + "-01"}})
	got := spans.GetSpans()
	if len(got) != 2 {
		t.Fatalf("%d spans", len(got))
	}
	client, server := got[0], got[1]
	if server.Name != "GET /v1/items/{id}" || server.SpanKind != trace.SpanKindServer || server.SpanContext.TraceID().String() != traceID || server.Parent.SpanID().String() != parent {
		t.Errorf("request: %s, %s of %s, kind %s", server.Name, server.Parent.SpanID(), server.SpanContext.TraceID(), server.SpanKind)
	}
	if client.Name != "GET" || client.SpanKind != trace.SpanKindClient || client.Parent.SpanID() != server.SpanContext.SpanID() {
		t.Errorf("attempt: %s below %s, kind %s", client.Name, client.Parent.SpanID(), client.SpanKind)
	}
	want := fmt.Sprintf("00-%s-%s-01", traceID, client.SpanContext.SpanID())
	if sent := f.echo.last.Load().Header.Get("Traceparent"); sent != want {
		t.Errorf("upstream got %s, want %s", sent, want)
	}
	for name, value := range map[string]string{
		"http.request.method": "GET", "http.route": "/v1/items/{id}", "http.response.status_code": "200", "url.path": "/v1/items/7",
		"partidor.route": "item", "partidor.tenant": "t1", "partidor.outcome": "allowed", "partidor.source": "redis",
	} {
		if got := attributesOf(server)[name]; got != value {
			t.Errorf("%s = %q, want %q", name, got, value)
		}
	}
	upstream, _ := url.Parse(f.echo.URL)
	for name, value := range map[string]string{
		"server.address": upstream.Hostname(), "server.port": upstream.Port(), "url.full": f.echo.URL + "/v1/items/7", "http.response.status_code": "200",
	} {
		if got := attributesOf(client)[name]; got != value {
			t.Errorf("%s = %q, want %q", name, got, value)
		}
	}
}

// Without a tracer the client's trace headers pass as they are.
func TestTraceHeadersPassUntouched(t *testing.T) {
	f := newFixture(t, nil, nil)
	const header = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	f.do(t, "GET", "/v1/items", http.Header{"X-Api-Key": {"k-t1"}, "Traceparent": {header}})
	if got := f.echo.last.Load().Header.Get("Traceparent"); got != header {
		t.Errorf("upstream got %q", got)
	}
}

// request-path 110: whatever paths, methods, agents and tenants come, the series stay few.
func TestSeriesAreBounded(t *testing.T) {
	f := newFixture(t, nil, nil)
	_, reader := observed(t, f)
	for i := range 200 {
		f.do(t, fmt.Sprintf("M%d", i), fmt.Sprintf("/v1/items/%d", i), http.Header{"X-Api-Key": {"k-t1"}, "User-Agent": {fmt.Sprint(i)}})
		f.do(t, "GET", fmt.Sprintf("/nowhere/%d", i), http.Header{"X-Api-Key": {fmt.Sprint(i)}})
		f.do(t, "GET", "/v1/items", http.Header{"X-Api-Key": {fmt.Sprint(i)}})
	}
	var all metricdata.ResourceMetrics
	if err := reader.Collect(t.Context(), &all); err != nil {
		t.Fatal(err)
	}
	series := map[string]int{}
	for _, m := range all.ScopeMetrics[0].Metrics {
		switch data := m.Data.(type) {
		case metricdata.Histogram[float64]:
			series[m.Name] = len(data.DataPoints)
		case metricdata.Sum[int64]:
			series[m.Name] = len(data.DataPoints)
			if m.Name == "http.server.active_requests" && data.DataPoints[0].Value != 0 {
				t.Errorf("%d requests are still active", data.DataPoints[0].Value)
			}
		}
	}
	// item 200 by _OTHER, nothing matched 404, items 401.
	if series["http.server.request.duration"] != 3 || series["http.client.request.duration"] != 1 || series["http.server.active_requests"] != 1 {
		t.Errorf("series %v", series)
	}
}

// An upstream cannot make series at will either: what it answers outside the statuses of HTTP is one series.
func TestStatusesAreBounded(t *testing.T) {
	f := newFixture(t, func(w http.ResponseWriter, r *http.Request) {
		status, _ := strconv.Atoi(r.Header.Get("Answer"))
		w.WriteHeader(status)
	}, nil)
	_, reader := observed(t, f)
	for status := 598; status < 700; status++ {
		f.do(t, "GET", "/v1/items", http.Header{"X-Api-Key": {"k-t1"}, "Answer": {strconv.Itoa(status)}})
	}
	var all metricdata.ResourceMetrics
	if err := reader.Collect(t.Context(), &all); err != nil {
		t.Fatal(err)
	}
	for _, m := range all.ScopeMetrics[0].Metrics {
		if data, ok := m.Data.(metricdata.Histogram[float64]); ok && len(data.DataPoints) != 3 {
			t.Errorf("%s: %d series, want 598, 599 and all others", m.Name, len(data.DataPoints))
		}
	}
}

// request-path 26, its second half: repeats are attempts of one request.
func TestAttemptsAreCounted(t *testing.T) {
	f := newFixture(t, func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) }, nil)
	f.Handler.Close()
	c := fixtureConfig(f.echo.URL)
	c.Routes[0].Retry.Attempts = 3
	c.SetDefaults()
	if err := f.Handler.Reload(c); err != nil {
		t.Fatal(err)
	}
	spans, reader := observed(t, f)
	f.do(t, "GET", "/v1/items", nil)
	var all metricdata.ResourceMetrics
	if err := reader.Collect(t.Context(), &all); err != nil {
		t.Fatal(err)
	}
	counts := map[string]int64{}
	for _, m := range all.ScopeMetrics[0].Metrics {
		switch data := m.Data.(type) {
		case metricdata.Histogram[float64]:
			counts[m.Name] = int64(data.DataPoints[0].Count)
		case metricdata.Sum[int64]:
			counts[m.Name] = data.DataPoints[0].Value
		}
	}
	if counts["http.server.request.duration"] != 1 || counts["partidor.gateway.upstream.attempts"] != 3 {
		t.Errorf("counts %v", counts)
	}
	got := spans.GetSpans()
	if len(got) != 4 {
		t.Fatalf("%d spans, want one of the request and three of attempts", len(got))
	}
	for i, resent := range []string{"", "1", "2"} {
		a := attributesOf(got[i])
		if a["http.request.resend_count"] != resent || a["error.type"] != "503" || got[i].Status.Code != codes.Error {
			t.Errorf("attempt %d: resent %q, error %q, %v", i+1, a["http.request.resend_count"], a["error.type"], got[i].Status)
		}
	}
}

// An outage under load fills no log: a line per route, status and second, which tells what was left out.
func TestJournalIsBounded(t *testing.T) {
	f := newFixture(t, func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(http.StatusInternalServerError) }, nil)
	for range 300 {
		f.do(t, "GET", "/v1/items", nil)
	}
	lines := strings.Count(f.log.String(), "status=500")
	if lines < 1 || lines > 10 {
		t.Errorf("%d lines for 300 failures", lines)
	}
	f.do(t, "GET", "/v1/items", nil)
	if strings.Contains(f.log.String(), "k-t1") {
		t.Error("a credential is in the log")
	}
}
