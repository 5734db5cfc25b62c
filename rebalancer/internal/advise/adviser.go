package advise

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"partidor.dev/partidor/rebalancer/internal/plan"
	"partidor.dev/partidor/shared/limit"
	"partidor.dev/partidor/shared/telemetry"
	"partidor.dev/partidor/shared/wire"
)

// Sender is the region name in the header of advice: the control plane is none.
const Sender = wire.SenderControl

// Options of an Adviser.
type Options struct {
	// Conn publishes. It is not closed.
	Conn *nats.Conn
	// Instance names this rebalancer, Started its life in Unix milliseconds.
	Instance string
	Started  int64
	// Held tells the share a region was last seen to hold of a key, false if unknown; repeats stop by it. Nil repeats
	// until the next cycle.
	Held func(key limit.Key, region string) (limit.Share, bool)
	// Repeat is the time between repetitions, 5 s by default.
	Repeat time.Duration
	// Logger and Tracer default to none.
	Logger *slog.Logger
	Tracer trace.Tracer
}

// Cycle is the leader's word of when the plan was made: fencing term, and number within it.
type Cycle struct {
	Term, Number int64
}

// Adviser publishes and repeats advice. Safe for concurrent use.
type Adviser struct {
	options Options

	mu       sync.Mutex
	cycle    Cycle
	headers  nats.Header
	open     map[string][]wire.Move
	sequence map[string]uint64
}

// New makes an adviser that has nothing to say.
func New(o Options) *Adviser {
	if o.Repeat <= 0 {
		o.Repeat = 5 * time.Second
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Tracer == nil {
		o.Tracer = noop.Tracer{}
	}
	return &Adviser{options: o, open: map[string][]wire.Move{}, sequence: map[string]uint64{}}
}

// Send publishes the moves of a cycle to the regions that must give and keeps them for repetition; what was open of
// former cycles is dropped. Regions are named in the order the plan knew them. The trace in ctx travels along.
func (a *Adviser) Send(ctx context.Context, cycle Cycle, regions []plan.Region, moves []plan.Move) error {
	ctx, span := a.options.Tracer.Start(ctx, "advise", trace.WithSpanKind(trace.SpanKindProducer), telemetry.Sending(wire.SubjectAdvice("*")),
		trace.WithAttributes(attribute.Int64("partidor.term", cycle.Term), attribute.Int64("partidor.cycle", cycle.Number),
			attribute.Int("partidor.moves", len(moves))))
	defer span.End()
	a.mu.Lock()
	defer a.mu.Unlock()
	a.cycle = cycle
	a.headers = telemetry.Inject(ctx, nil)
	a.open = byGiver(regions, moves)
	return a.publish()
}

// Run repeats what is open until ctx ends.
func (a *Adviser) Run(ctx context.Context) error {
	tick := time.NewTicker(a.options.Repeat)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			if err := a.repeat(); err != nil {
				a.options.Logger.Warn("advice not repeated", "error", err)
			}
		}
	}
}

// Forget drops what is open: this rebalancer no longer leads, or is paused.
func (a *Adviser) Forget() {
	a.mu.Lock()
	defer a.mu.Unlock()
	clear(a.open)
}

// Open counts the moves that no giver has been seen to make yet.
func (a *Adviser) Open() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	n := 0
	for _, moves := range a.open {
		n += len(moves)
	}
	return n
}

func (a *Adviser) repeat() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.options.Held != nil {
		for region, moves := range a.open {
			a.open[region] = slices.DeleteFunc(moves, func(m wire.Move) bool {
				held, ok := a.options.Held(limit.Key{Tenant: m.Tenant, Route: m.Route}, region)
				return ok && held <= m.Target
			})
		}
	}
	return a.publish()
}

// publish sends what is open. The caller holds mu.
func (a *Adviser) publish() error {
	var errs []error
	for region, moves := range a.open {
		if len(moves) == 0 {
			continue
		}
		chunks := wire.Chunks(moves)
		for i, chunk := range chunks {
			errs = append(errs, a.publishPart(region, chunk, i+1, len(chunks)))
		}
	}
	return errors.Join(errs...)
}

func (a *Adviser) publishPart(region string, moves []wire.Move, part, parts int) error {
	a.sequence[region]++
	data, err := wire.Encode(&wire.Advice{
		Header: wire.Header{
			Region: Sender, Instance: a.options.Instance, Started: a.options.Started,
			Sequence: a.sequence[region], Part: part, Parts: parts,
		},
		Term: a.cycle.Term, Cycle: a.cycle.Number, Moves: moves,
	})
	if err != nil {
		return err
	}
	if err := a.options.Conn.PublishMsg(&nats.Msg{Subject: wire.SubjectAdvice(region), Data: data, Header: a.headers}); err != nil {
		return fmt.Errorf("publish advice to %s: %w", region, err)
	}
	return nil
}

// byGiver is the moves as messages say them, by the region that gives.
func byGiver(regions []plan.Region, moves []plan.Move) map[string][]wire.Move {
	out := map[string][]wire.Move{}
	for i := range moves {
		m := &moves[i]
		from := regions[m.From].Name
		out[from] = append(out[from], wire.Move{
			Tenant: m.Key.Tenant, Route: m.Key.Route, To: regions[m.To].Name,
			From: m.Held, Target: m.Target, Amount: m.Amount, Floor: m.Floor, Reason: m.Reason.String(),
		})
	}
	return out
}
