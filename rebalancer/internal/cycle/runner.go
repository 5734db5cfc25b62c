package cycle

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"partidor.dev/partidor/rebalancer/internal/advise"
	"partidor.dev/partidor/rebalancer/internal/collect"
	"partidor.dev/partidor/rebalancer/internal/ledger"
	"partidor.dev/partidor/rebalancer/internal/parameter"
	"partidor.dev/partidor/rebalancer/internal/plan"
	"partidor.dev/partidor/shared/limit"
)

// Ledger is the memory of a cycle. Calls return within ctx's deadline.
type Ledger interface {
	// Refresh brings the copy up to date.
	Refresh(ctx context.Context, m *ledger.Mirror) error
	// Commit writes a decision, or fails with ledger.ErrFenced where its term is over.
	Commit(ctx context.Context, d ledger.Decision) error
	// Publish sets the base share that gateways use of some regions, if none has changed since seen was read.
	Publish(ctx context.Context, term int64, holder string, seen []ledger.Region, shares map[string]limit.Share) error
}

// Collector knows the demand. Slices of loads are in the order of regions.
type Collector interface {
	Demand(now time.Time, regions []string) []plan.Demand
	Refused(now time.Time, regions []string) []plan.Demand
	Regions(now time.Time) []collect.RegionStatus
	// Expect says which regions ought to be heard.
	Expect(regions []string)
}

// Adviser tells the regions what to give, until they have.
type Adviser interface {
	Send(ctx context.Context, c advise.Cycle, regions []plan.Region, moves []plan.Move) error
	Forget()
}

// Options of a Runner. All are needed.
type Options struct {
	Ledger    Ledger
	Collector Collector
	Adviser   Adviser
	// Base are the parameters where the ledger sets none; Cycle, if set, replaces the parameter (for demonstrations, whose
	// cycle is below the bounds of the parameter).
	Base   parameter.Values
	Cycle  time.Duration
	Holder string
	Logger *slog.Logger
	Tracer trace.Tracer
	Meter  metric.Meter
}

// Runner runs cycles while this process leads. Lead is called by one goroutine at a time; the rest is safe for all.
type Runner struct {
	options Options
	metrics *metrics
	request chan struct{}
	poke    chan struct{}

	mu     sync.Mutex
	last   Outcome
	values parameter.Values
}

// Outcome is how the last cycle went.
type Outcome struct {
	Term, Number int64
	At           time.Time
	Took         time.Duration
	// Cause is scheduled, early or requested.
	Cause string
	// Keys planned, changed; Moves advised.
	Keys, Changed, Moves int
	Err                  error
}

// New makes a runner.
func New(o Options) (*Runner, error) {
	r := &Runner{options: o, request: make(chan struct{}, 1), poke: make(chan struct{}, 1), values: o.Base}
	m, err := newMetrics(o.Meter, r)
	if err != nil {
		return nil, fmt.Errorf("cycle metrics: %w", err)
	}
	r.metrics = m
	return r, nil
}

// Request asks for a cycle now. It does nothing where this process does not lead.
func (r *Runner) Request() { notify(r.request) }

// Poke says that the ledger has changed.
func (r *Runner) Poke() { notify(r.poke) }

func notify(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default: // one is waiting already
	}
}

// Last is the outcome of the last cycle of this process, zero before the first.
func (r *Runner) Last() Outcome {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.last
}

// Parameters in force as last read.
func (r *Runner) Parameters() parameter.Values {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.values
}

// Lead runs cycles until ctx ends.
func (r *Runner) Lead(ctx context.Context, term int64) {
	defer r.options.Adviser.Forget()
	defer r.options.Collector.Expect(nil)
	l := &reign{Runner: r, term: term}
	// The collector has listened all along, so a new leader need not wait a whole cycle.
	l.next = time.Now().Add(min(r.cycle(), r.Parameters().Plan.EarlyAfter))
	tick := time.NewTicker(min(time.Second, r.cycle()/4))
	defer tick.Stop()
	for {
		cause := ""
		select {
		case <-ctx.Done():
			return
		case <-r.poke:
			l.refreshed = time.Time{}
		case <-r.request:
			cause = causeRequested
		case <-tick.C:
		}
		l.step(ctx, cause)
	}
}

// cycle is the time between two plans in force.
func (r *Runner) cycle() time.Duration {
	if r.options.Cycle > 0 {
		return r.options.Cycle
	}
	return r.Parameters().Plan.Cycle
}

func (r *Runner) finish(span trace.Span, o Outcome) {
	r.mu.Lock()
	r.last = o
	r.mu.Unlock()
	r.metrics.finished(o)
	span.SetAttributes(attribute.Int("partidor.keys", o.Keys), attribute.Int("partidor.changed", o.Changed), attribute.Int("partidor.moves", o.Moves))
	if o.Err != nil {
		span.SetStatus(codes.Error, o.Err.Error())
	}
}
