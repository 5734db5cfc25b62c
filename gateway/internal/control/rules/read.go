package rules

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"go.opentelemetry.io/otel/trace"

	"partidor.dev/partidor/shared/limit"
)

// read asks the source once and publishes what it says.
func (l *Loader) read(ctx context.Context) {
	begin := time.Now()
	l.lastRead = begin
	since := l.o.Holder.Load().Revision()
	if status := l.Status(); !status.Loaded || status.Stale {
		since = limit.Revision{} // of what is on disk nothing can be taken for certain
	}
	ctx, span := l.o.Tracer.Start(l.caused(ctx), "rules read")
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

// caused puts a read into the trace of the announcement that it follows, if any: whoever follows a change sees where it
// arrives, also where the gateway samples nothing by itself.
func (l *Loader) caused(ctx context.Context) context.Context {
	l.mu.Lock()
	defer l.mu.Unlock()
	cause := l.cause
	l.cause = trace.SpanContext{}
	if !cause.IsValid() {
		return ctx
	}
	return trace.ContextWithRemoteSpanContext(ctx, cause)
}

// take publishes the increment where it is news. The error means that it cannot be served by.
func (l *Loader) take(ctx context.Context, inc *Increment, now time.Time) error {
	l.faults.report(ctx, inc.Faults)
	l.metrics.faulty(ctx, inc.Faults)
	if inc.Behind {
		return nil
	}
	current := l.o.Holder.Load()
	news := !inc.Empty() || inc.Shadow != current.Shadow() || inc.Control != current.Control() || inc.Slow == current.FastLoop() ||
		!sameRegions(noteEarlier(inc.Regions, current.Regions(), now), current.Regions())
	if !news && inc.Reached == current.Revision() {
		l.saver.confirmed(now)
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
	if news { // else only numbers have passed, of what gateways do not read
		l.saver.changed(now)
	}
	return nil
}

// note updates the status after a read that began at begin, and tells whether the read brought all it should.
func (l *Loader) note(ctx context.Context, begin time.Time, inc *Increment, err error) (satisfied bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	before := l.status
	l.status.Err = err
	if err != nil {
		if news := before.Err == nil || before.Err.Error() != err.Error(); news && !l.starting { // wrong in another way now is news
			message := "rules cannot be read, the last ones stay in force"
			if !before.Loaded {
				message = "rules cannot be read, there are none to serve by"
			}
			l.o.Logger.ErrorContext(ctx, message, "source", l.o.Source.Name(), "error", err)
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
