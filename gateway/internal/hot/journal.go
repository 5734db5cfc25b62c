package hot

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"go.opentelemetry.io/otel/trace"

	"partidor.dev/partidor/gateway/internal/hot/respond"
)

// journal logs requests that went wrong: clients that left and answers from 500 on. One line per route, status and
// second at most; the next line tells how many were left out, so that an outage under load does not drown the log.
type journal struct {
	logger *slog.Logger
	mu     sync.Mutex
	lines  map[line]*lineState
}

type line struct {
	route  string
	status int
}

type lineState struct {
	last    time.Time
	skipped int
}

const (
	lineEvery = time.Second
	maxLines  = 4096 // Routes come and go with reloads.
)

func newJournal(l *slog.Logger) *journal { return &journal{logger: l, lines: map[line]*lineState{}} }

func (j *journal) note(x *exchange, status int, took time.Duration) {
	level := slog.LevelWarn
	if status == respond.ClientClosed {
		level = slog.LevelInfo
	}
	// Carried for the log's trace ids; the request's own context may have ended.
	ctx := trace.ContextWithSpan(context.Background(), x.span)
	if !j.logger.Enabled(ctx, level) {
		return
	}
	name := ""
	if x.route != nil {
		name = x.route.ID
	}
	skipped, ok := j.due(line{name, status}, x.began.Add(took))
	if !ok {
		return
	}
	attrs := []slog.Attr{
		slog.String("route", name), slog.Int("status", status), slog.String("method", methodName(x.in.Method)),
		slog.String("tenant", x.tenant), slog.Duration("took", took),
	}
	if x.attempt.target != "" {
		attrs = append(attrs, slog.String("target", x.attempt.target))
	}
	if x.cause != nil {
		attrs = append(attrs, slog.String("error", x.cause.Error()))
	}
	if skipped > 0 {
		attrs = append(attrs, slog.Int("left_out", skipped))
	}
	j.logger.LogAttrs(ctx, level, "request failed", attrs...)
}

// due tells whether a line may be written at now, and how many were left out before it.
func (j *journal) due(l line, now time.Time) (skipped int, ok bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	s := j.lines[l]
	if s == nil {
		if len(j.lines) >= maxLines {
			clear(j.lines)
		}
		s = &lineState{}
		j.lines[l] = s
	} else if now.Sub(s.last) < lineEvery {
		s.skipped++
		return 0, false
	}
	skipped = s.skipped
	*s = lineState{last: now}
	return skipped, true
}
