package cycle

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"partidor.dev/partidor/rebalancer/internal/advise"
	"partidor.dev/partidor/rebalancer/internal/ledger"
	"partidor.dev/partidor/rebalancer/internal/plan"
)

// The causes of a cycle.
const (
	causeScheduled = "scheduled"
	causeEarly     = "early"
	causeRequested = "requested"
)

const (
	// refreshEvery is how long parameters and rules may be old between cycles if no word of a change comes.
	refreshEvery = 5 * time.Second
	// callTimeout bounds reading and writing the ledger.
	callTimeout = 20 * time.Second
)

// reign is the state of one term, used by one goroutine.
type reign struct {
	*Runner
	term      int64
	number    int64
	mirror    ledger.Mirror
	refreshed time.Time
	next      time.Time // when the next scheduled cycle, or the retry of a failed one, is due
	planned   time.Time // when the last one began
	failures  int
	watched   time.Time // when refusals were last judged
}

// step does what is due now.
func (l *reign) step(ctx context.Context, cause string) {
	now := time.Now()
	l.watch(now)
	if cause == "" && !now.Before(l.next) {
		cause = causeScheduled
	}
	if cause != "" || now.Sub(l.refreshed) >= refreshEvery {
		err := l.refresh(ctx, now)
		if err == nil {
			err = l.publish(ctx, now)
		}
		if err != nil {
			l.failed(ctx, cause, now, err)
			return
		}
	}
	if l.Parameters().Paused {
		l.options.Adviser.Forget()
		l.next = now.Add(l.cycle())
		return
	}
	var early []plan.Demand
	if cause == "" {
		if early = l.early(now); len(early) == 0 {
			return
		}
		cause = causeEarly
	}
	l.run(ctx, cause, now, early)
}

func (l *reign) refresh(ctx context.Context, now time.Time) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	if err := l.options.Ledger.Refresh(ctx, &l.mirror); err != nil {
		return err
	}
	l.refreshed = now
	l.options.Collector.Expect(names(slices.DeleteFunc(slices.Clone(l.mirror.Regions), func(r ledger.Region) bool { return r.State == ledger.RegionDead })))
	set := make(map[string]json.RawMessage, len(l.mirror.Parameters))
	for name, p := range l.mirror.Parameters {
		set[name] = p.Value
	}
	values, err := l.options.Base.With(set)
	if err != nil {
		l.options.Logger.WarnContext(ctx, "parameters of the ledger not understood, not used", "error", err)
	}
	l.mu.Lock()
	l.values = values
	l.mu.Unlock()
	if soonest := now.Add(l.cycle()); soonest.Before(l.next) {
		l.next = soonest // the cycle has become shorter
	}
	return nil
}

// early lists the keys that are worth a plan before the cycle ends.
func (l *reign) early(now time.Time) []plan.Demand {
	p := l.Parameters().Plan
	if now.Sub(l.planned) < min(p.EarlyAfter, l.cycle()) || l.mirror.Rules == nil {
		return nil
	}
	var worth []plan.Demand
	for _, d := range l.options.Collector.Refused(now, names(l.mirror.Regions)) {
		d.Rule = l.mirror.Rules.Lookup(d.Key, now).Rule
		if plan.Early(&d, p) {
			worth = append(worth, d)
		}
	}
	return worth
}

// run is one cycle; early, if given, are the only keys it plans.
func (l *reign) run(ctx context.Context, cause string, now time.Time, early []plan.Demand) {
	l.number++
	l.planned = now
	ctx, span := l.options.Tracer.Start(ctx, "cycle", trace.WithNewRoot(), trace.WithAttributes(
		attribute.Int64("partidor.term", l.term), attribute.Int64("partidor.cycle", l.number), attribute.String("partidor.cause", cause)))
	defer span.End()
	o := Outcome{Term: l.term, Number: l.number, At: now, Cause: cause}
	o.Err = l.decide(ctx, &o, now, early)
	o.Took = time.Since(now)
	l.finish(span, o)
	if o.Err != nil {
		l.retry(ctx, now, o.Err)
		return
	}
	l.failures = 0
	if cause != causeEarly {
		l.next = now.Add(l.cycle())
	}
	l.options.Logger.InfoContext(ctx, "cycle", "term", l.term, "cycle", l.number, "cause", cause,
		"keys", o.Keys, "changed", o.Changed, "moves", o.Moves, "took", o.Took)
}

func (l *reign) decide(ctx context.Context, o *Outcome, now time.Time, early []plan.Demand) error {
	in := l.collect(ctx, now, early)
	res := l.plan(ctx, in)
	o.Keys, o.Changed, o.Moves = len(res.Targets), res.Changed, len(res.Moves)
	if err := l.commit(ctx, in, res); err != nil {
		return err
	}
	return l.options.Adviser.Send(ctx, advise.Cycle{Term: l.term, Number: l.number}, in.Regions, res.Moves)
}

func (l *reign) collect(ctx context.Context, now time.Time, early []plan.Demand) *plan.Input {
	_, span := l.options.Tracer.Start(ctx, "collect")
	defer span.End()
	regions := names(l.mirror.Regions)
	demand := early
	if demand == nil {
		demand = l.options.Collector.Demand(now, regions)
	}
	heard := make(map[string]bool)
	for _, s := range l.options.Collector.Regions(now) {
		heard[s.Name] = s.Known
	}
	known := make([]bool, len(regions))
	for i, name := range regions {
		known[i] = heard[name]
	}
	in := Input(&l.mirror, demand, known, l.Parameters(), now)
	span.SetAttributes(attribute.Int("partidor.keys", len(in.Keys)))
	return &in
}

func (l *reign) plan(ctx context.Context, in *plan.Input) *plan.Result {
	_, span := l.options.Tracer.Start(ctx, "plan")
	defer span.End()
	res := plan.Plan(*in)
	span.SetAttributes(attribute.Int("partidor.changed", res.Changed), attribute.Int("partidor.skipped", res.Skipped))
	return &res
}

func (l *reign) commit(ctx context.Context, in *plan.Input, res *plan.Result) error {
	ctx, span := l.options.Tracer.Start(ctx, "commit")
	defer span.End()
	d := Decide(&l.mirror, in, res)
	d.Term, d.Cycle, d.Holder = l.term, l.number, l.options.Holder
	call, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	if err := l.options.Ledger.Commit(call, d); err != nil {
		span.SetStatus(codes.Error, err.Error())
		l.refreshed = time.Time{} // part of it may have been written
		return err
	}
	l.mirror.Apply(&d, in.Now)
	return nil
}

// failed is a cycle that did not come as far as planning.
func (l *reign) failed(ctx context.Context, cause string, now time.Time, err error) {
	if ctx.Err() != nil {
		return
	}
	_, span := l.options.Tracer.Start(ctx, "cycle", trace.WithNewRoot())
	defer span.End()
	l.finish(span, Outcome{Term: l.term, Number: l.number, At: now, Cause: cause, Err: err})
	l.retry(ctx, now, err)
}

// retry sets when to try again: after one, two, four … seconds, never later than the next cycle.
func (l *reign) retry(ctx context.Context, now time.Time, err error) {
	pause := min(time.Second<<min(l.failures, 6), l.cycle())
	l.failures++
	l.next, l.refreshed = now.Add(pause), now
	if errors.Is(err, ledger.ErrFenced) || ctx.Err() != nil {
		return // the election ends this reign
	}
	l.options.Logger.ErrorContext(ctx, "cycle failed", "term", l.term, "cycle", l.number, "retry_in", pause, "error", err)
}
