package rules

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
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
	status    Status

	// Owned by the goroutine of Run.
	nextRead time.Time
	lastRead time.Time
	misses   int // reads in a row that failed or fell short of what was announced
}

// Status is how well the snapshot follows its source.
type Status struct {
	// Source is the kind of source.
	Source string
	// Loaded tells that there is a snapshot to serve by.
	Loaded bool
	// Stale tells that it was read from disk, and that the source has not been reached since the start.
	Stale bool
	// Revision is in force, Announced the newest anybody has spoken of.
	Revision, Announced limit.Revision
	// ConfirmedAt is when the source was last known to have nothing newer; of a stale snapshot, when it was saved.
	ConfirmedAt time.Time
	// Faults are the rows refused since the start.
	Faults int
	// Err is why the last read failed; nil after a good one.
	Err error
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
	saved, err := l.saver.load(l.o.Holder.Load().Region())
	if err != nil {
		l.o.Logger.WarnContext(ctx, "saved snapshot not used", "file", l.o.File, "error", err)
	} else if saved != nil {
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
	l.read(first)
	status := l.Status()
	switch {
	case !status.Loaded:
		return fmt.Errorf("no rules to serve by: %w", status.Err)
	case status.Stale:
		l.o.Logger.WarnContext(ctx, "rules source is away, serving by the saved snapshot",
			"source", l.o.Source.Name(), "saved_at", status.ConfirmedAt, "revision", status.Revision, "error", status.Err)
	}
	return nil
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
		case <-timer.C:
		}
		now := time.Now()
		if !now.Before(l.nextRead) {
			l.read(ctx)
		}
		l.expire(now)
		if due, ok := l.saver.due(); ok && !now.Before(due) {
			l.saver.save(ctx, l.o.Holder.Load(), l.confirmedAt())
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

// Announce tells that something as new as at exists. Older words do nothing.
func (l *Loader) Announce(at limit.Revision) {
	l.mu.Lock()
	news := at.Newer(l.announced)
	if news {
		l.announced = at
	}
	behind := l.announced.Newer(l.status.Revision)
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

// Status is how things stand.
func (l *Loader) Status() Status {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.status
	s.Announced = l.announced.Max(s.Revision)
	return s
}

func (l *Loader) confirmedAt() time.Time { return l.Status().ConfirmedAt }

// read asks the source once and publishes what it says.
func (l *Loader) read(ctx context.Context) {
	begin := time.Now()
	l.lastRead = begin
	since := l.o.Holder.Load().Revision()
	if status := l.Status(); !status.Loaded || status.Stale {
		since = limit.Revision{} // of what is on disk nothing can be taken for certain
	}
	ctx, span := l.o.Tracer.Start(ctx, "rules read")
	defer span.End()
	within, cancel := context.WithTimeout(ctx, l.o.Timeout)
	inc, err := l.o.Source.Read(within, since)
	cancel()
	now := time.Now()
	if err == nil {
		err = l.take(ctx, inc, begin)
	}
	l.describe(span, inc, err)
	if err != nil && errors.Is(ctx.Err(), context.Canceled) {
		return // stopping
	}
	l.metrics.read(ctx, now.Sub(begin), err)
	l.schedule(now, l.note(ctx, begin, inc, err))
}

// take publishes the increment where it is news. The error means that it cannot be served by.
func (l *Loader) take(ctx context.Context, inc *Increment, now time.Time) error {
	l.faults.report(ctx, inc.Faults)
	l.metrics.faulty(ctx, inc.Faults)
	current := l.o.Holder.Load()
	if inc.Behind || (inc.Empty() && inc.Reached == current.Revision() && inc.Shadow == current.Shadow() && slices.Equal(inc.Regions, current.Regions())) {
		return nil
	}
	if refused := inc.publish(l.o.Holder, l.o.Default, now); refused != nil {
		f := Fault{Table: tableRegion, Name: current.Region(), Err: refused}
		l.faults.report(ctx, []Fault{f})
		l.metrics.faulty(ctx, []Fault{f})
		inc.Faults = append(inc.Faults, f)
		if len(l.o.Holder.Load().Regions()) == 0 {
			return refused
		}
	}
	l.saver.changed(now)
	return nil
}

// note updates the status after a read that began at begin, and tells whether the read brought all it should.
func (l *Loader) note(ctx context.Context, begin time.Time, inc *Increment, err error) (satisfied bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	before := l.status
	l.status.Err = err
	if err != nil {
		if before.Err == nil {
			l.o.Logger.ErrorContext(ctx, "rules cannot be read, the last ones stay in force", "source", l.o.Source.Name(), "error", err)
		}
		return false
	}
	l.status.Faults += len(inc.Faults)
	l.status.Loaded = true
	l.status.Stale = l.o.Holder.Load().Stale()
	l.status.Revision = l.o.Holder.Load().Revision()
	if !inc.Behind {
		l.status.ConfirmedAt = begin
	}
	if before.Err != nil || !before.Loaded || before.Stale {
		l.o.Logger.InfoContext(ctx, "rules are read", "source", l.o.Source.Name(), "revision", l.status.Revision,
			"rules", l.o.Holder.Load().Counts().Rules)
	}
	return !l.announced.Newer(l.status.Revision)
}

// schedule sets the time of the next read.
func (l *Loader) schedule(now time.Time, satisfied bool) {
	wait := l.o.Poll
	if satisfied {
		l.misses = 0
	} else {
		first := lagFirst
		if l.Status().Err != nil {
			first = retryFirst
		}
		wait = min(wait, first<<min(l.misses, 16))
		l.misses++
	}
	l.nextRead = now.Add(wait - time.Duration(rand.Int64N(int64(wait)/10+1)))
}
