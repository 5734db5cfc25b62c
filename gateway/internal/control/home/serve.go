package home

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"partidor.dev/partidor/gateway/internal/snapshot"
	"partidor.dev/partidor/shared/bucket"
	"partidor.dev/partidor/shared/limit"
	"partidor.dev/partidor/shared/rights/home"
	"partidor.dev/partidor/shared/telemetry"
	"partidor.dev/partidor/shared/wire"
)

// queue is the group that the instances of a region serve in: one of them gets each request.
const queue = "home"

// Run serves other regions until ctx ends, then waits for the requests under way.
func (h *Home) Run(ctx context.Context) error {
	var under sync.WaitGroup
	defer under.Wait()
	sub, err := h.o.Conn.QueueSubscribe(wire.SubjectConsume(h.o.Region), queue, func(m *nats.Msg) {
		select {
		case h.serving <- struct{}{}:
		default:
			h.metrics.served("overflow") // no answer: the asker runs out of budget, no token is lost
			return
		}
		under.Go(func() {
			defer func() { <-h.serving }()
			h.serve(ctx, m)
		})
	})
	if err != nil {
		return fmt.Errorf("serve consumption: %w", err)
	}
	back, err := h.o.Conn.Subscribe(wire.SubjectReturn(h.o.Region), func(m *nats.Msg) { h.takeBack(ctx, m) })
	if err != nil {
		return fmt.Errorf("serve what is given back: %w", err)
	}
	<-ctx.Done()
	_ = sub.Unsubscribe() // the connection may be gone already
	_ = back.Unsubscribe()
	return nil
}

func (h *Home) serve(ctx context.Context, m *nats.Msg) {
	ask := new(wire.Consume)
	if err := wire.Decode(m.Data, ask); err != nil || ask.To != h.o.Region {
		h.metrics.served("malformed")
		return
	}
	reply, charged := h.served(telemetry.Extract(ctx, m.Header), ask)
	reply.Header = h.header()
	if charged != nil {
		h.admitted.add(reply.Sequence, *charged, time.Now())
	}
	h.metrics.served(reply.Outcome)
	data, err := wire.Encode(reply)
	if err == nil {
		err = m.Respond(data)
	}
	if err != nil {
		h.o.Logger.Debug("reply to consumption not sent", "to", ask.Region, "error", err)
	}
}

// decide takes from the own store, and again when the next token comes, as long as the reply is of use. It tells what was
// charged, nil for nothing.
func (h *Home) decide(ctx context.Context, ask *wire.Consume) (reply *wire.Consumed, charged *bucket.Limit) {
	snap := h.o.Rules.Load()
	m := snap.Lookup(ask.Tenant, ask.Route)
	if reply := byMode(&m, ask); reply != nil {
		return reply, nil
	}
	lim := bucket.Limit{
		Key: limit.Key{Tenant: ask.Tenant, Route: ask.Route}, Rule: m.Rule, Revision: m.Revision,
		Base: m.Base, Late: snap.Late(&m, time.Now()), Floor: m.Floor, Moved: m.Moved, Cost: ask.Cost,
	}
	left := min(time.Duration(ask.BudgetMillis)*time.Millisecond, h.o.Budget)
	for {
		began := time.Now()
		d, err := h.take(ctx, lim)
		if err != nil {
			return &wire.Consumed{Outcome: wire.ConsumedUnable}, nil
		}
		left -= time.Since(began)
		if d.Outcome == limit.Refused && d.Share > 0 {
			if wait, ok := home.Hold(d.RetryAfter, left, 0); ok && pause(ctx, wait) {
				left -= wait
				continue
			}
		}
		if d.Outcome == limit.Allowed {
			charged = &lim
		}
		return answer(&d), charged
	}
}

// knownBy is when an asker will have heard of a rule that blocks.
const knownBy = time.Second

// byMode answers for rules that no bucket is needed for, nil for those that are enforced. What is counted or not limited at
// all charges nobody, and refuses nobody who knows of no newer rule: the asker's would then be the one to go by, which this
// home cannot.
func byMode(m *snapshot.Match, ask *wire.Consume) *wire.Consumed {
	switch {
	case m.Rule == nil, m.Rule.Mode == limit.Unlimited, m.Rule.Mode == limit.Shadow:
		if asked := (limit.Revision{Epoch: ask.Epoch, Number: ask.Number}); asked == (limit.Revision{}) || asked.Newer(m.Revision) {
			return &wire.Consumed{Outcome: wire.ConsumedUnable}
		}
		reply := &wire.Consumed{Outcome: wire.ConsumedAdmitted}
		if m.Rule != nil {
			reply.Remaining = m.Rule.Capacity
		}
		return reply
	case m.Rule.Mode == limit.Block:
		return &wire.Consumed{Outcome: wire.ConsumedRefused, RetryMicros: knownBy.Microseconds()}
	}
	return nil
}

func (h *Home) take(ctx context.Context, lim bucket.Limit) (limit.Decision, error) {
	bounded, cancel := context.WithTimeout(ctx, h.o.Deadline)
	defer cancel()
	d, err := h.o.Store.Take(bounded, []bucket.Limit{lim})
	if err != nil {
		return d, fmt.Errorf("consume for another region: %w", err)
	}
	return d, nil
}

// answer says a decision in the words of the wire.
func answer(d *limit.Decision) *wire.Consumed {
	reply := &wire.Consumed{
		Remaining: max(0, d.Remaining), RetryMicros: d.RetryAfter.Microseconds(), ResetMicros: d.ResetAfter.Microseconds(),
	}
	switch {
	case d.Outcome == limit.Allowed:
		reply.Outcome = wire.ConsumedAdmitted
	case d.Share == 0:
		return &wire.Consumed{Outcome: wire.ConsumedMoved}
	case d.Outcome == limit.TooLarge:
		reply.Outcome = wire.ConsumedTooLarge
	default:
		reply.Outcome = wire.ConsumedRefused
	}
	return reply
}

// pause waits, and tells whether it was not cut short.
func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}
