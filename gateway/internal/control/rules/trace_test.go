package rules_test

import (
	"testing"
	"testing/synctest"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"partidor.dev/partidor/gateway/internal/control/rules"
)

// The read that an announcement causes belongs to the trace that the announcement came in; later reads do not.
func TestReadBelongsToItsAnnouncement(t *testing.T) {
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
		reads, within := 0, 0
		for _, s := range spans.Ended() {
			if s.Name() != "rules read" {
				continue
			}
			reads++
			if s.SpanContext().TraceID() == announce.SpanContext().TraceID() {
				within++
			}
		}
		if reads < 3 || within != 1 {
			t.Errorf("%d reads, %d in the trace of the announcement; want one of several", reads, within)
		}
	})
}
