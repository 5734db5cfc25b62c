package rules

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/trace"
	tracenoop "go.opentelemetry.io/otel/trace/noop"

	"partidor.dev/partidor/gateway/internal/snapshot"
	"partidor.dev/partidor/shared/limit"
)

// Options are what a Loader is made of. Holder and Source are needed, all else has a default.
type Options struct {
	Holder *snapshot.Holder
	Source Source
	// Default is the limit where neither a rule nor the source says anything. Default: limit.DefaultRule.
	Default *limit.Rule
	// Poll is the interval between two looks at a source that announces nothing. Default 30 s, jittered by a tenth.
	Poll time.Duration
	// Timeout bounds one read. Default 60 s: the first one may bring half a million rules.
	Timeout time.Duration
	// File is where the last good snapshot is saved; empty for nowhere.
	File string
	// SaveEvery bounds how often it is written. Default 30 s.
	SaveEvery time.Duration
	Logger    *slog.Logger
	Meter     metric.Meter
	Tracer    trace.Tracer
}

const (
	// startWithin bounds the first read where a saved snapshot can serve.
	startWithin = 15 * time.Second
	// gap is the least time between two reads, so that a burst of announcements is one read.
	gap = 50 * time.Millisecond
	// retryFirst is the wait after a failed read, doubled up to the poll interval.
	retryFirst = time.Second
	// lagFirst is the wait for a replica to show what was announced, doubled up to the poll interval.
	lagFirst = 100 * time.Millisecond
)

// Loader keeps a snapshot up to date. Start once, then Run; Announce and Status at any time.
type Loader struct {
	o       Options
	wake    chan struct{}
	metrics *metrics
	saver   *saver
	faults  faultLog

	mu        sync.Mutex
	announced limit.Revision
	cause     trace.SpanContext // of the announcement that the next read follows
	status    Status

	// Owned by the goroutine of Start, then of Run.
	starting bool // Start tells what comes of the first read
	nextRead time.Time
	lastRead time.Time
	misses   int // reads in a row that failed or fell short of what was announced
}

// New is a Loader that has loaded nothing yet.
func New(o Options) (*Loader, error) {
	if o.Holder == nil || o.Source == nil {
		return nil, errors.New("rules: holder and source are needed")
	}
	def := limit.DefaultRule
	or(&o.Default, &def)
	or(&o.Poll, 30*time.Second)
	or(&o.Timeout, time.Minute)
	or(&o.SaveEvery, 30*time.Second)
	or(&o.Logger, slog.New(slog.DiscardHandler))
	if o.Meter == nil {
		o.Meter = noop.Meter{}
	}
	if o.Tracer == nil {
		o.Tracer = tracenoop.Tracer{}
	}
	l := &Loader{o: o, wake: make(chan struct{}, 1), faults: faultLog{logger: o.Logger}, saver: newSaver(o.File, o.SaveEvery, o.Logger)}
	l.status.Source = o.Source.Name()
	var err error
	l.metrics, err = newMetrics(o.Meter, l)
	return l, err
}

func or[T comparable](p *T, def T) {
	var zero T
	if *p == zero {
		*p = def
	}
}

// Start loads everything once. Where the source is away, the last saved snapshot serves and Start succeeds; without one the
// error says why there is nothing to serve by, and Run goes on trying.
func (l *Loader) Start(ctx context.Context) error {
	// First from disk: of rows that the source holds but that cannot be used, this is the last good state.
	saved, unusable := l.saver.load(l.o.Holder.Load().Region())
	if saved != nil {
		_ = l.o.Holder.Replace(func(*snapshot.Snapshot) (*snapshot.Snapshot, error) { return saved.snapshot, nil })
		l.mu.Lock()
		l.status.Loaded, l.status.Stale, l.status.ConfirmedAt = true, true, saved.at
		l.status.Revision = saved.snapshot.Revision()
		l.mu.Unlock()
	}
	first := ctx
	if saved != nil {
		// There is something to serve by: better soon and stale than late.
		var cancel context.CancelFunc
		first, cancel = context.WithTimeout(ctx, startWithin)
		defer cancel()
	}
	l.starting = true
	l.read(first)
	l.starting = false
	status := l.Status()
	switch {
	case !status.Loaded:
		return fmt.Errorf("no rules to serve by: %w; %s", status.Err, l.nothingSaved(unusable))
	case unusable != nil:
		l.o.Logger.WarnContext(ctx, "saved snapshot not used", "file", l.o.File, "error", unusable)
	case status.Stale:
		l.o.Logger.WarnContext(ctx, "rules source is away, serving by the saved snapshot",
			"source", l.o.Source.Name(), "saved_at", status.ConfirmedAt, "revision", status.Revision, "error", status.Err)
	}
	return nil
}

// nothingSaved says why no saved snapshot can serve instead of the source.
func (l *Loader) nothingSaved(unusable error) string {
	switch {
	case l.o.File == "":
		return "snapshot.file names no place to keep the last good ones in"
	case unusable != nil:
		return fmt.Sprintf("the snapshot in %s is not usable: %s", l.o.File, unusable)
	}
	return "no snapshot is saved in " + l.o.File + " yet"
}

// Run follows the source until ctx ends, then saves what is unsaved.
func (l *Loader) Run(ctx context.Context) error {
	if l.nextRead.IsZero() {
		l.nextRead = time.Now() // never started
	}
	defer func() { l.saver.save(context.WithoutCancel(ctx), l.o.Holder.Load(), l.confirmedAt()) }()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		timer.Reset(time.Until(l.next()))
		select {
		case <-ctx.Done():
			return nil
		case <-l.wake:
			l.nextRead = l.lastRead.Add(gap)
			continue
		case err := <-l.saver.written:
			l.saver.finish(ctx, err)
			continue
		case <-timer.C:
		}
		now := time.Now()
		if !now.Before(l.nextRead) {
			l.read(ctx)
		}
		l.expire(now)
		if due, ok := l.saver.due(); ok && !now.Before(due) {
			l.saver.begin(now, l.o.Holder.Load(), l.confirmedAt())
		}
	}
}

// next is when there is something to do.
func (l *Loader) next() time.Time {
	next := l.nextRead
	if at, ok := l.saver.due(); ok && at.Before(next) {
		next = at
	}
	if at, ok := l.o.Holder.Load().NextExpiry(); ok && at.Before(next) {
		next = at
	}
	return next
}

// expire ends temporary rules whose time has come.
func (l *Loader) expire(now time.Time) {
	if at, ok := l.o.Holder.Load().NextExpiry(); !ok || now.Before(at) {
		return
	}
	_ = l.o.Holder.Update(func(b *snapshot.Builder) error {
		b.Expire(now)
		return nil
	})
	l.saver.changed(now)
}

// Announce tells that something as new as at exists. Older words do nothing. The read that follows belongs to the trace that ctx
// is in.
func (l *Loader) Announce(ctx context.Context, at limit.Revision) {
	l.mu.Lock()
	news := at.Newer(l.announced)
	if news {
		l.announced = at
	}
	behind := l.announced.Newer(l.status.Revision)
	// The same word may come twice, from the ledger itself and over NATS: only the latter knows its trace.
	if cause := trace.SpanContextFromContext(ctx); behind && at == l.announced && cause.IsValid() {
		l.cause = cause
	}
	l.mu.Unlock()
	if news && behind {
		l.Look()
	}
}

// Look makes Run read the source soon, for sources that cannot say what is new, or when announcements may have been missed.
func (l *Loader) Look() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}
