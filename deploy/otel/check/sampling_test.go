package check

import (
	"context"
	"crypto/rand"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/pmetric/pmetricotlp"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

// patient is how long a test waits for what takes ten seconds, on any machine.
const patient = 3 * time.Minute

func await(t *testing.T, what string, ok func() bool) {
	t.Helper()
	deadline, tick := time.After(patient), time.NewTicker(20*time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-deadline:
			t.Fatalf("waited in vain for %s", what)
		case <-tick.C:
		}
	}
}

// What the components make of their settings: `otelcol validate`.
func TestConfigurationIsValid(t *testing.T) {
	if err := collector(t).DryRun(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// Every trace that somebody will ask for is kept whole, whichever span of it shows that; of the others one in a hundred is. Metrics
// come out as Prometheus wants them.
func TestKeepsWhatMatters(t *testing.T) {
	b, endpoint := startBackend(t)
	in, metrics := free(t), free(t)
	t.Setenv("PARTIDOR_OTLP_GRPC", in)
	t.Setenv("PARTIDOR_OTLP_HTTP", free(t))
	t.Setenv("PARTIDOR_TRACES_ENDPOINT", endpoint)
	t.Setenv("PARTIDOR_METRICS", metrics)
	t.Setenv("PARTIDOR_HEALTH", free(t))
	run(t)
	conn, err := grpc.NewClient(in, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	send := ptraceotlp.NewGRPCClient(conn)
	export := func(traces ptrace.Traces) {
		t.Helper()
		if _, err := send.Export(t.Context(), ptraceotlp.NewExportRequestFromTraces(traces), grpc.WaitForReady(true)); err != nil {
			t.Fatal(err)
		}
	}
	outcome := func(o string) func(decision ptrace.Span) {
		return func(d ptrace.Span) { d.Attributes().PutStr("partidor.outcome", o) }
	}
	kept := map[string]func(decision ptrace.Span){
		"refused": outcome("refused"), "unable": outcome("unable"), "too large": outcome("too_large"), "blocked": outcome("blocked"),
		"degraded": func(d ptrace.Span) {
			outcome("allowed")(d)
			d.Attributes().PutBool("partidor.degraded", true)
		},
		"error": func(d ptrace.Span) { d.Status().SetCode(ptrace.StatusCodeError) },
		"slow":  func(d ptrace.Span) { d.SetEndTimestamp(d.StartTimestamp() + 300e6) },
		"ask":   func(d ptrace.Span) { d.Attributes().PutStr("messaging.destination.name", "partidor.v1.ask.us") },
	}
	for name, mark := range kept {
		export(trace(name, "partidor-gateway", mark))
	}
	export(trace("cycle", "partidor-rebalancer", func(ptrace.Span) {}))
	kept["cycle"] = nil
	const others = 2000
	for range others {
		export(trace("plain", "partidor-gateway", func(d ptrace.Span) {
			outcome("allowed")(d)
			d.Attributes().PutBool("partidor.degraded", false)
			d.Attributes().PutStr("messaging.destination.name", "partidor.v1.usage.us")
		}))
	}
	count(t, conn)
	for name := range kept {
		await(t, "the two spans of "+name, func() bool { return b.spans(name) == 2 })
	}
	await(t, "some of the others", func() bool { return b.spans("plain") > 0 })
	if n := b.spans("plain") / 2; n > others/10 {
		t.Errorf("%d of %d uninteresting traces are kept, want about one in a hundred", n, others)
	}
	await(t, "the metric with its region", func() bool {
		return strings.Contains(scrape(t, metrics), `partidor_region="eu"`)
	})
	if page := scrape(t, metrics); !strings.Contains(page, "partidor_decisions_total{") {
		t.Errorf("no partidor_decisions_total in\n%s", page)
	}
}

// trace of a request's span and its decision's, which arrives first and bears the mark.
func trace(name, service string, mark func(decision ptrace.Span)) ptrace.Traces {
	traces := ptrace.NewTraces()
	resource := traces.ResourceSpans().AppendEmpty()
	resource.Resource().Attributes().PutStr("service.name", service)
	spans := resource.ScopeSpans().AppendEmpty().Spans()
	var id pcommon.TraceID
	_, _ = rand.Read(id[:]) // never fails
	start := pcommon.NewTimestampFromTime(time.Now())
	for i := range 2 {
		span := spans.AppendEmpty()
		span.SetTraceID(id)
		span.SetSpanID(pcommon.SpanID{byte(i + 1)})
		span.SetStartTimestamp(start)
		span.SetEndTimestamp(start + 1e6)
		span.Attributes().PutStr("test.trace", name)
		if i == 0 {
			span.SetParentSpanID(pcommon.SpanID{2})
			mark(span)
		}
	}
	return traces
}

// count sends one metric as a gateway does.
func count(t *testing.T, conn *grpc.ClientConn) {
	t.Helper()
	all := pmetric.NewMetrics()
	resource := all.ResourceMetrics().AppendEmpty()
	resource.Resource().Attributes().PutStr("service.name", "partidor-gateway")
	resource.Resource().Attributes().PutStr("partidor.region", "eu")
	m := resource.ScopeMetrics().AppendEmpty().Metrics().AppendEmpty()
	m.SetName("partidor.decisions")
	sum := m.SetEmptySum()
	sum.SetIsMonotonic(true)
	sum.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
	point := sum.DataPoints().AppendEmpty()
	point.SetTimestamp(pcommon.NewTimestampFromTime(time.Now()))
	point.SetIntValue(3)
	if _, err := pmetricotlp.NewGRPCClient(conn).Export(t.Context(), pmetricotlp.NewExportRequestFromMetrics(all)); err != nil {
		t.Fatal(err)
	}
}

func scrape(t *testing.T, address string) string {
	t.Helper()
	req, err := http.NewRequestWithContext(context.WithoutCancel(t.Context()), http.MethodGet, "http://"+address+"/metrics", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return "" // not there yet
	}
	defer resp.Body.Close()
	page, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(page)
}
