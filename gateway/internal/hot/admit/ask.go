package admit

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/trace"

	"partidor.dev/partidor/shared/bucket"
	"partidor.dev/partidor/shared/fallback"
	"partidor.dev/partidor/shared/limit"
)

// ask lets Redis decide within the deadline, else the fallback.
func (a *Admitter) ask(ctx context.Context, now time.Time, c *call) limit.Decision {
	n := a.nodes.of(&c.limits[0])
	permit, ok := n.Acquire(now)
	if !ok {
		return a.fallback(now, c)
	}
	life := a.memory.life.Load()
	if a.present(now, c) && !n.Calm() {
		// A debt is sent once, and lost if no answer comes: first see that there is somebody who answers.
		if took, err := a.probe(ctx, c); err != nil {
			a.restore(c)
			return a.failed(now, c, n, permit, took, err)
		}
	}
	d, took, err := a.take(ctx, c, c.limits)
	if err != nil {
		if bucket.Untouched(err) {
			a.restore(c)
		} else {
			a.unsettled(c)
		}
		return a.failed(now, c, n, permit, took, err)
	}
	end := now.Add(took)
	n.Done(end, permit, took, nil)
	a.metrics.asked(took)
	a.learn(end, c, &d, life)
	return d
}

// failed is the end of a call that brought no decision.
func (a *Admitter) failed(now time.Time, c *call, n *node, permit fallback.Permit, took time.Duration, err error) limit.Decision {
	end := now.Add(took)
	if n.failed.Load() == nil {
		lim := c.limits[0]
		lim.Cost, lim.Owed, lim.Ahead = 0, 0, 0
		n.failed.Store(&lim)
	}
	n.Done(end, permit, took, err)
	c.failed = true
	a.metrics.failed(took)
	return a.fallback(end, c)
}

// learn keeps what Redis has said: for the fallback, as a refusal, as tokens on hand.
func (a *Admitter) learn(now time.Time, c *call, d *limit.Decision, life uint64) {
	a.local.Observe(now, c.limits, d, a.terms(c.limits))
	at := a.since(now)
	if i := c.limitOf(d); i >= 0 {
		a.memory.heard(c, i, d, at)
	}
	if !c.ahead {
		return
	}
	for i := range c.limits {
		if c.hot[i] != nil {
			c.hot[i].landed(c, i, d, at, life)
		}
	}
	d.Remaining += d.Ahead
}

// present adds to the limits what this instance owes of them and the tokens it took ahead under rules now outdated. It
// tells whether there is a debt.
func (a *Admitter) present(now time.Time, c *call) (debt bool) {
	for i := range c.limits {
		lim := &c.limits[i]
		lim.Owed = a.local.Claim(now, lim.Key)
		debt = debt || lim.Owed > 0
		if c.hot[i] == nil {
			continue
		}
		if b := c.hot[i].batch.Load(); b != nil && !b.under(lim) && b.life == a.memory.life.Load() {
			lim.Owed -= c.hot[i].withdraw()
		}
	}
	return debt
}

// restore keeps the debts of a call that Redis has not seen.
func (a *Admitter) restore(c *call) {
	for i := range c.limits {
		a.local.Restore(c.limits[i].Key, c.limits[i].Owed)
	}
}

// unsettled lets go of the debts of a call that got no answer: they may have been settled, and are never settled twice.
func (a *Admitter) unsettled(c *call) {
	for i := range c.limits {
		if owed := c.limits[i].Owed; owed > 0 {
			a.metrics.unsettled(owed)
		}
	}
}

// probe asks for nothing, only to see that Redis decides.
func (a *Admitter) probe(ctx context.Context, c *call) (time.Duration, error) {
	nothing := append(c.localRoom[:0], c.limits...)
	for i := range nothing {
		nothing[i].Cost, nothing[i].Owed, nothing[i].Ahead = 0, 0, 0
	}
	_, took, err := a.take(ctx, c, nothing)
	return took, err
}

// take makes the call. It outlives the client, but not the deadline; the time it took is measured by the process's clock,
// as sockets are.
func (a *Admitter) take(ctx context.Context, c *call, limits []bucket.Limit) (limit.Decision, time.Duration, error) {
	if parent := trace.SpanFromContext(ctx); parent.IsRecording() {
		var span trace.Span
		ctx, span = a.opts.Tracer.Start(ctx, "take", trace.WithSpanKind(trace.SpanKindClient))
		defer span.End()
	}
	began := time.Now()
	if c.spend == nil {
		c.spend = new(spend)
	}
	c.spend.begin(ctx, began.Add(a.opts.Deadline), a.opts.Deadline)
	d, err := a.store.Take(c.spend, limits)
	took := time.Since(began)
	if intact := c.spend.end(); !intact || err != nil {
		// Whoever carries the call may still hold its context and limits: they are not used for another request.
		c.intact, c.spend = false, nil
	}
	if err != nil {
		spanFailed(ctx, err)
	}
	return d, took, err
}
