package hot

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	noopmetric "go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
	nooptrace "go.opentelemetry.io/otel/trace/noop"

	"partidor.dev/partidor/gateway/internal/hot/respond"
)

// telemetry is the spans and metrics of the request path, named by OpenTelemetry's semantic conventions for HTTP. Series
// are bounded by routes × methods × statuses; tenants appear in spans only.
type telemetry struct {
	tracer     trace.Tracer
	untraced   bool // The tracer does nothing: requests that carry no trace need no span.
	propagator propagation.TraceContext
	requests   metric.Float64Histogram
	upstreams  metric.Float64Histogram
	active     metric.Int64UpDownCounter
	attempts   metric.Int64Counter
	unmatched  routeMetrics
}

// The kinds of spans, made once: an option made for each call would be an allocation for each.
var (
	serverSpan = []trace.SpanStartOption{trace.WithSpanKind(trace.SpanKindServer)}
	clientSpan = []trace.SpanStartOption{trace.WithSpanKind(trace.SpanKindClient)}
)

var durations = metric.WithExplicitBucketBoundaries(0.0005, 0.001, 0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)

func newTelemetry(tracer trace.Tracer, meter metric.Meter) (*telemetry, error) {
	if tracer == nil {
		tracer = nooptrace.NewTracerProvider().Tracer("")
	}
	if meter == nil {
		meter = noopmetric.NewMeterProvider().Meter("")
	}
	_, untraced := tracer.(nooptrace.Tracer)
	t := &telemetry{tracer: tracer, untraced: untraced, unmatched: newRouteMetrics(nil)}
	var errs [4]error
	t.requests, errs[0] = meter.Float64Histogram("http.server.request.duration", metric.WithUnit("s"), durations,
		metric.WithDescription("Duration of requests, from head to end of answer."))
	t.upstreams, errs[1] = meter.Float64Histogram("http.client.request.duration", metric.WithUnit("s"), durations,
		metric.WithDescription("Duration of attempts upstream, until the answer's head."))
	t.active, errs[2] = meter.Int64UpDownCounter("http.server.active_requests", metric.WithUnit("{request}"),
		metric.WithDescription("Requests in flight, upgraded connections included."))
	t.attempts, errs[3] = meter.Int64Counter("partidor.gateway.upstream.attempts", metric.WithUnit("{attempt}"),
		metric.WithDescription("Attempts upstream; more than requests where some were repeated."))
	return t, errors.Join(errs[:]...)
}

// noSpan is the span of all requests that are not traced.
var noSpan trace.Span = nooptrace.Span{}

// begin starts the request's span, as a child of the client's where the client sent one.
func (t *telemetry) begin(x *exchange) context.Context {
	ctx := x.in.Context()
	t.active.Add(ctx, 1)
	if len(x.in.Header["Traceparent"]) > 0 {
		ctx = t.propagator.Extract(ctx, propagation.HeaderCarrier(x.in.Header))
	} else if t.untraced {
		x.span = noSpan
		return ctx
	}
	x.traced = true
	ctx, x.span = t.tracer.Start(ctx, methodName(x.in.Method), serverSpan...)
	return ctx
}

// end closes what begin opened. Being deferred, it also sees the panic with which a broken answer ends.
func (x *exchange) end() {
	t := x.handler.telemetry
	x.endAttempt()
	ctx := context.Background()
	if x.traced {
		ctx = trace.ContextWithSpan(ctx, x.span) // The request's own context may have ended.
	}
	status := x.recorder.Status
	if status == 0 {
		status = respond.ClientClosed
	}
	took := x.handler.opts.Now().Sub(x.began)
	m := &t.unmatched
	if x.route != nil {
		m = &x.route.metrics
	}
	t.requests.Record(ctx, took.Seconds(), m.recordOptions(x.in.Method, status)...)
	t.active.Add(ctx, -1)
	if status >= respond.ClientClosed {
		x.handler.journal.note(x, status, took)
	}
	if x.span.IsRecording() {
		x.describe(status)
	}
	x.span.End()
}

func (x *exchange) describe(status int) {
	r := x.in
	scheme := "http"
	if r.TLS != nil {
		scheme = "https"
	}
	host, port := address(r.Host, r.TLS != nil)
	attrs := []attribute.KeyValue{
		attribute.String("http.request.method", methodName(r.Method)),
		attribute.String("url.path", r.URL.Path),
		attribute.String("url.scheme", scheme),
		attribute.String("server.address", host), attribute.Int("server.port", port),
		attribute.String("network.protocol.version", strings.TrimPrefix(r.Proto, "HTTP/")),
		attribute.Int("http.response.status_code", status),
	}
	if x.hasClient {
		attrs = append(attrs, attribute.String("client.address", x.client.String()))
	}
	if x.route != nil {
		attrs = append(attrs, attribute.String("http.route", x.route.Path), attribute.String("partidor.route", x.route.ID))
		x.span.SetName(methodName(r.Method) + " " + x.route.Path)
	}
	if x.tenant != "" {
		attrs = append(attrs, attribute.String("partidor.tenant", x.tenant))
	}
	if x.decided {
		attrs = append(attrs,
			attribute.String("partidor.outcome", x.decision.Outcome.String()),
			attribute.String("partidor.source", x.decision.Source.String()),
			attribute.Bool("partidor.degraded", x.decision.Degraded))
	}
	x.span.SetAttributes(attrs...)
	if status >= 500 {
		x.span.SetAttributes(attribute.String("error.type", strconv.Itoa(status)))
		x.span.SetStatus(codes.Error, http.StatusText(status))
	}
	if x.cause != nil {
		x.span.RecordError(x.cause)
	}
}

// address is the host and the port of an authority.
func address(authority string, secure bool) (host string, port int) {
	host, text, err := net.SplitHostPort(authority)
	if err != nil {
		host = authority
	}
	if port, err = strconv.Atoi(text); err == nil {
		return host, port
	}
	if secure {
		return host, 443
	}
	return host, 80
}

// withoutQuery is u without what may hold secrets.
func withoutQuery(u *url.URL) string {
	short := *u
	short.RawQuery, short.Fragment, short.User = "", "", nil
	return short.String()
}

// attempt is one try upstream.
type attempt struct {
	span   trace.Span // nil where none is open
	began  time.Time
	target string
	number int // of the try, from 1
}

// Attempt opens the span of a try upstream and sends its trace along.
func (x *exchange) Attempt(out *http.Request, target string) {
	t := x.handler.telemetry
	x.endAttempt()
	ctx, span := out.Context(), noSpan
	if x.traced {
		ctx, span = t.tracer.Start(ctx, methodName(out.Method), clientSpan...)
	}
	x.attempt = attempt{span: span, began: x.handler.opts.Now(), target: target, number: x.attempt.number + 1}
	t.attempts.Add(ctx, 1, x.route.metrics.attempts...)
	if !span.IsRecording() {
		// Without a recorder the client's own trace headers pass on as they are.
		if span.SpanContext().IsValid() {
			t.propagator.Inject(ctx, propagation.HeaderCarrier(out.Header))
		}
		return
	}
	host, port := address(target, out.URL.Scheme == "https")
	span.SetAttributes(
		attribute.String("http.request.method", methodName(out.Method)),
		attribute.String("server.address", host), attribute.Int("server.port", port),
		attribute.String("url.full", withoutQuery(out.URL)))
	if x.attempt.number > 1 {
		span.SetAttributes(attribute.Int("http.request.resend_count", x.attempt.number-1))
	}
	t.propagator.Inject(ctx, propagation.HeaderCarrier(out.Header))
}

// Answered notes how the try went. Its span stays open until the answer has been passed on.
func (x *exchange) Answered(status int, err error) {
	took := x.handler.opts.Now().Sub(x.attempt.began)
	x.handler.telemetry.upstreams.Record(x.in.Context(), took.Seconds(), x.route.metrics.recordOptions(x.in.Method, status)...)
	span := x.attempt.span
	if !span.IsRecording() {
		return
	}
	if err != nil {
		span.RecordError(err)
		span.SetStatus(codes.Error, "no answer")
		span.SetAttributes(attribute.String("error.type", "_OTHER"))
		return
	}
	span.SetAttributes(attribute.Int("http.response.status_code", status))
	if status >= 400 {
		span.SetAttributes(attribute.String("error.type", strconv.Itoa(status)))
		span.SetStatus(codes.Error, http.StatusText(status))
	}
}

func (x *exchange) endAttempt() {
	if x.attempt.span != nil {
		x.attempt.span.End()
		x.attempt.span = nil
	}
}
