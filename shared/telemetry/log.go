package telemetry

import (
	"context"
	"log/slog"

	"go.opentelemetry.io/contrib/bridges/otelslog"
	sdklog "go.opentelemetry.io/otel/sdk/log"
	"go.opentelemetry.io/otel/trace"
)

// newLogger writes JSON lines and, where logs are exported, sends each record there too.
func newLogger(o Options, export *sdklog.LoggerProvider) *slog.Logger {
	level := o.LogLevel
	if level == nil {
		level = slog.LevelInfo
	}
	var handler slog.Handler = traced{slog.NewJSONHandler(o.LogOutput, &slog.HandlerOptions{Level: level})}
	for _, a := range []slog.Attr{
		slog.String("service", o.Service), slog.String("region", o.Region), slog.String("instance", o.Instance),
	} {
		if a.Value.String() != "" {
			handler = handler.WithAttrs([]slog.Attr{a})
		}
	}
	if export != nil {
		sent := otelslog.NewHandler(o.Service, otelslog.WithLoggerProvider(export))
		handler = slog.NewMultiHandler(handler, atLeast{sent, level})
	}
	return slog.New(handler)
}

// traced adds trace_id and span_id to records made inside a span.
type traced struct{ slog.Handler }

func (h traced) Handle(ctx context.Context, r slog.Record) error {
	if span := trace.SpanContextFromContext(ctx); span.IsValid() {
		r = r.Clone()
		r.AddAttrs(slog.String("trace_id", span.TraceID().String()), slog.String("span_id", span.SpanID().String()))
	}
	return h.Handler.Handle(ctx, r)
}

func (h traced) WithAttrs(attrs []slog.Attr) slog.Handler { return traced{h.Handler.WithAttrs(attrs)} }

func (h traced) WithGroup(name string) slog.Handler { return traced{h.Handler.WithGroup(name)} }

// atLeast drops records below a level; the exporting handler has none of its own.
type atLeast struct {
	slog.Handler
	level slog.Leveler
}

func (h atLeast) Enabled(ctx context.Context, l slog.Level) bool {
	return l >= h.level.Level() && h.Handler.Enabled(ctx, l)
}

func (h atLeast) WithAttrs(attrs []slog.Attr) slog.Handler {
	return atLeast{h.Handler.WithAttrs(attrs), h.level}
}

func (h atLeast) WithGroup(name string) slog.Handler {
	return atLeast{h.Handler.WithGroup(name), h.level}
}
