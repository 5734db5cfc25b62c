package home

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"

	"partidor.dev/partidor/shared/bounded"
	"partidor.dev/partidor/shared/bucket"
	"partidor.dev/partidor/shared/limit"
	"partidor.dev/partidor/shared/rights/home"
	"partidor.dev/partidor/shared/telemetry"
	"partidor.dev/partidor/shared/wire"
)

// ErrMoved: no region that was asked holds the rights; the own one may.
var ErrMoved = errors.New("the home has moved")

// ErrUnable: the home could not decide.
var ErrUnable = errors.New("the home is unable to decide")

// Home consumes at other regions and serves them. Safe for concurrent use.
type Home struct {
	o        Options
	book     *home.Book
	refusals *bounded.Map[refusal]
	started  time.Time
	sequence atomic.Uint64
	admitted *admissions // for other regions, while they may be given back
	metrics  *metrics
	serving  chan struct{}
}

// refusal is what the home of one key last refused.
type refusal struct {
	told atomic.Pointer[told]
}

type told struct {
	until    time.Time // nobody need ask before
	decision limit.Decision
	next     time.Time // when the next token comes
}

// New prepares a Home; Run serves.
func New(o Options) (*Home, error) {
	o, err := o.checked()
	if err != nil {
		return nil, err
	}
	m, err := newMetrics(o.Meter)
	if err != nil {
		return nil, fmt.Errorf("home: %w", err)
	}
	return &Home{
		o: o, book: home.NewBook(maxKeys), refusals: bounded.New(maxKeys, func(*refusal) int { return 0 }),
		started: time.Now(), admitted: newAdmissions(), metrics: m, serving: make(chan struct{}, maxServing),
	}, nil
}

// Away tells whether a tiny limit is consumed in another region; first is its home before it is ever moved.
func (h *Home) Away(key limit.Key, first string) bool { return h.book.Home(key, first) != h.o.Region }

// Left notes that the own region turned out not to hold the rights of a key any more.
func (h *Home) Left(key limit.Key) { h.book.Learn(key, h.after(h.o.Region)) }

// Refused tells what Take would answer from memory, without asking: no token can be at the home.
func (h *Home) Refused(now time.Time, lim *bucket.Limit) (limit.Decision, bool) {
	d, ok := h.refused(now, lim)
	if ok {
		h.metrics.asked("remembered")
	}
	return d, ok
}

// Take decides one limit at its home, within the budget. What was admitted and is not used is given back by calling back,
// once; it may be nil. A region that no longer holds the rights is passed over for the next
// one; ErrMoved says that they may be in the own region, which Away tells from then on. Any error means that there is no
// decision: a token may have been lost then, never doubled.
func (h *Home) Take(ctx context.Context, now time.Time, lim *bucket.Limit, first string) (d limit.Decision, back func(), err error) {
	if d, ok := h.Refused(now, lim); ok {
		return d, nil, nil
	}
	// It outlives the client that asked, but not the budget.
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), h.o.Budget)
	defer cancel()
	for range h.o.Rules.Load().Regions() {
		to := h.book.Home(lim.Key, first)
		if to == h.o.Region {
			return limit.Decision{}, nil, ErrMoved
		}
		reply, err := h.traced(bounded, to, lim)
		if err != nil {
			h.metrics.asked("failed")
			return limit.Decision{}, nil, err
		}
		h.metrics.asked(reply.Outcome)
		switch reply.Outcome {
		case wire.ConsumedMoved:
			h.book.Learn(lim.Key, h.after(to))
		case wire.ConsumedUnable:
			return limit.Decision{}, nil, ErrUnable
		case wire.ConsumedAdmitted:
			back = func() { h.giveBack(to, reply) }
			fallthrough
		default:
			return h.decision(now, lim, reply), back, nil
		}
	}
	return limit.Decision{}, nil, ErrMoved
}

// decision is a reply in the words of the request path.
func (h *Home) decision(now time.Time, lim *bucket.Limit, reply *wire.Consumed) limit.Decision {
	d := limit.Decision{
		Source: limit.SourceHome, Key: lim.Key, Rule: lim.Rule, Revision: lim.Revision, Share: limit.Whole,
		Remaining: reply.Remaining, Tokens: float64(reply.Remaining), ResetAfter: micros(reply.ResetMicros),
	}
	switch reply.Outcome {
	case wire.ConsumedRefused:
		d.Outcome, d.RetryAfter = limit.Refused, micros(reply.RetryMicros)
		h.remember(now, lim, d)
	case wire.ConsumedTooLarge:
		d.Outcome = limit.TooLarge
	}
	return d
}

// request sends one Consume and waits for its reply until ctx ends.
func (h *Home) request(ctx context.Context, to string, lim *bucket.Limit) (*wire.Consumed, error) {
	data, err := wire.Encode(&wire.Consume{
		Header: h.header(), To: to, Tenant: lim.Key.Tenant, Route: lim.Key.Route, Cost: lim.Cost,
		BudgetMillis: max(0, h.o.Budget-2*h.o.Trip).Milliseconds(),
		Epoch:        lim.Revision.Epoch, Number: lim.Revision.Number,
	})
	if err != nil {
		return nil, fmt.Errorf("consume at %s: %w", to, err)
	}
	msg, err := h.o.Conn.RequestMsgWithContext(ctx, &nats.Msg{
		Subject: wire.SubjectConsume(to), Data: data, Header: telemetry.Inject(ctx, nats.Header{}),
	})
	if err != nil {
		return nil, fmt.Errorf("consume at %s: %w", to, err)
	}
	reply := new(wire.Consumed)
	if err := wire.Decode(msg.Data, reply); err != nil {
		return nil, fmt.Errorf("consume at %s: %w", to, err)
	}
	return reply, nil
}

func (h *Home) header() wire.Header {
	return wire.Header{
		Region: h.o.Region, Instance: h.o.Instance, Sequence: h.sequence.Add(1), Started: h.started.UnixMilli(),
	}
}

// after is the region that is asked when another one does not hold the rights: the next by name.
func (h *Home) after(region string) string {
	regions := h.o.Rules.Load().Regions()
	for i := range regions {
		if regions[i].Name == region {
			return regions[(i+1)%len(regions)].Name
		}
	}
	return region
}

// refused answers from memory while no token can be at the home.
func (h *Home) refused(now time.Time, lim *bucket.Limit) (limit.Decision, bool) {
	r := h.refusals.Get(lim.Key)
	if r == nil {
		return limit.Decision{}, false
	}
	t := r.told.Load()
	if t == nil || !now.Before(t.until) || lim.Revision.Newer(t.decision.Revision) {
		return limit.Decision{}, false
	}
	d := t.decision
	d.RetryAfter = t.next.Sub(now)
	d.ResetAfter = max(d.RetryAfter, d.ResetAfter-(t.decision.RetryAfter-d.RetryAfter))
	return d, true
}

// remember keeps a refusal of a single token, which every cost shares, for as long as asking again is of no use.
func (h *Home) remember(now time.Time, lim *bucket.Limit, d limit.Decision) {
	if lim.Cost != 1 {
		return
	}
	silence := home.Silence(d.RetryAfter, h.o.Trip, h.o.Budget)
	if silence <= 0 {
		return
	}
	r := h.refusals.GetOrAdd(lim.Key, func(fresh, _ *refusal) { fresh.told.Store(nil) })
	r.told.Store(&told{until: now.Add(silence), decision: d, next: now.Add(d.RetryAfter)})
}

func micros(us int64) time.Duration {
	const most = int64(1<<63-1) / int64(time.Microsecond)
	return time.Duration(min(us, most)) * time.Microsecond
}
