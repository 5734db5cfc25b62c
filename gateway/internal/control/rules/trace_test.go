package rules_test

import (
	"testing"
	"testing/synctest"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"partidor.dev/partidor/gateway/internal/control/rules"
)

// The read that an announcement causes is linked to the trace that the announcement came in; later reads are not.
func TestReadIsLinkedToItsAnnouncement(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		spans := tracetest.NewSpanRecorder()
		provider := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans))
		src := &source{visible: 1}
		l, _ := running(t, src, func(o *rules.Options) { o.Tracer = provider.Tracer("test") })
		ctx, announce := provider.Tracer("test").Start(t.Context(), "announce")
		src.show(2, nil)
		l.Announce(ctx, rev(2))
		announce.End()
		time.Sleep(2 * time.Minute)
		var linked []trace.TraceID
		reads := 0
		for _, s := range spans.Ended() {
			if s.Name() != "rules read" {
				continue
			}
			reads++
			for _, link := range s.Links() {
				linked = append(linked, link.SpanContext.TraceID())
			}
		}
		if reads < 3 || len(linked) != 1 || linked[0] != announce.SpanContext().TraceID() {
			t.Errorf("%d reads, linked to %v; want one linked to %v", reads, linked, announce.SpanContext().TraceID())
		}
	})
}
