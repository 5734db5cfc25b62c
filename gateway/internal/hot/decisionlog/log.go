package decisionlog

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync"
	"time"

	"go.opentelemetry.io/otel/metric"
	mnoop "go.opentelemetry.io/otel/metric/noop"

	"partidor.dev/partidor/gateway/internal/hot/admit"
	"partidor.dev/partidor/shared/limit"
)

const (
	// maxPending bounds the bytes that wait to be written, about 20,000 decisions.
	maxPending = 4 << 20
	// followEvery is how often the writer looks whether the file was moved away, as rotation does.
	followEvery = time.Second
	// Stdout is the file name that stands for standard output.
	Stdout = "-"
)

// Admitter decides requests; a *admit.Admitter is one.
type Admitter interface {
	Admit(ctx context.Context, now time.Time, req admit.Request) limit.Decision
}

// Options of a Log. Logger and Meter have defaults.
type Options struct {
	// File is appended to, and made where it is missing.
	File string
	// Region and Instance stand in every line.
	Region, Instance string
	// Next decides.
	Next   Admitter
	Logger *slog.Logger
	Meter  metric.Meter
}

// Log is an Admitter that notes what another one decides. Safe for many goroutines; Run writes.
type Log struct {
	next    Admitter
	path    string
	form    form
	logger  *slog.Logger
	dropped metric.Int64Counter
	wake    chan struct{}

	mu      sync.Mutex
	pending []byte // whole lines
	lines   int64  // in pending
	left    int64  // lines that did not fit into pending since it was last taken

	// Of Run alone.
	file    *os.File
	looked  time.Time
	failing bool
}

// Open opens the file, so that one that cannot be written is found at start.
func Open(o Options) (*Log, error) {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Meter == nil {
		o.Meter = mnoop.NewMeterProvider().Meter("")
	}
	dropped, err := o.Meter.Int64Counter("partidor.decision_log.dropped", metric.WithUnit("{decision}"),
		metric.WithDescription("Decisions that are missing from the decision log, because its file failed or did not keep up."))
	if err != nil {
		return nil, err
	}
	l := &Log{next: o.Next, path: o.File, form: newForm(o.Region, o.Instance), logger: o.Logger, dropped: dropped, wake: make(chan struct{}, 1)}
	if l.file, err = open(o.File); err != nil {
		return nil, fmt.Errorf("decision log: %w", err)
	}
	return l, nil
}

func open(path string) (*os.File, error) {
	if path == Stdout {
		return os.Stdout, nil
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_RDWR, 0o640) // read by a collector of the same group
	if err != nil {
		return nil, err
	}
	// A process that was killed may have left half a line.
	var last [1]byte
	if end, err := f.Seek(0, io.SeekEnd); err == nil && end > 0 {
		if _, err := f.ReadAt(last[:], end-1); err == nil && last[0] != '\n' {
			_, err = f.WriteString("\n")
			return f, err
		}
	}
	return f, nil
}

// Admit decides as Next does and notes the decision.
func (l *Log) Admit(ctx context.Context, now time.Time, req admit.Request) limit.Decision {
	began := time.Now()
	d := l.next.Admit(ctx, now, req)
	l.note(ctx, began, &req, &d)
	return d
}

func (l *Log) note(ctx context.Context, began time.Time, req *admit.Request, d *limit.Decision) {
	at := time.Now()
	l.mu.Lock()
	if len(l.pending) < maxPending {
		l.pending = l.form.append(l.pending, ctx, at, at.Sub(began), req, d)
		l.lines++
	} else {
		l.left++
	}
	l.mu.Unlock()
	select {
	case l.wake <- struct{}{}:
	default: // it is awake
	}
}

// Run writes until ctx ends, then what is left, and closes the file.
func (l *Log) Run(ctx context.Context) error {
	var spare []byte
	for {
		select {
		case <-l.wake:
			spare = l.flush(ctx, spare)
		case <-ctx.Done():
			l.flush(context.WithoutCancel(ctx), spare)
			if l.file == nil || l.path == Stdout {
				return nil
			}
			return l.file.Close()
		}
	}
}

// flush writes what is pending and returns its buffer, to be used again; spare takes its place.
func (l *Log) flush(ctx context.Context, spare []byte) []byte {
	l.mu.Lock()
	out, lines, left := l.pending, l.lines, l.left
	l.pending, l.lines, l.left = spare[:0], 0, 0
	l.mu.Unlock()
	if left > 0 {
		l.dropped.Add(ctx, left)
	}
	if err := l.write(out); err != nil {
		l.dropped.Add(ctx, lines)
		if !l.failing {
			l.logger.WarnContext(ctx, "decisions cannot be logged; requests go on", "file", l.path, "error", err)
		}
		l.failing = true
	} else if l.failing && lines > 0 {
		l.failing = false
		l.logger.InfoContext(ctx, "decisions are logged again", "file", l.path)
	}
	return out
}

func (l *Log) write(lines []byte) error {
	if err := l.follow(); err != nil {
		return err
	}
	_, err := l.file.Write(lines)
	return err
}

// follow opens the file anew where somebody has moved the open one away.
func (l *Log) follow() error {
	if l.path == Stdout || l.file != nil && time.Since(l.looked) < followEvery {
		return nil
	}
	l.looked = time.Now()
	if l.file != nil {
		there, err := os.Stat(l.path)
		own, err2 := l.file.Stat()
		if err == nil && err2 == nil && os.SameFile(there, own) {
			return nil
		}
		_ = l.file.Close() //nolint:errcheck // it is somebody else's by now
		l.file = nil
	}
	f, err := open(l.path)
	if err != nil {
		return err
	}
	l.file = f
	return nil
}
