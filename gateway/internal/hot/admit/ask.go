package admit

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/trace"

	"partidor.dev/partidor/shared/bucket"
	"partidor.dev/partidor/shared/limit"
)

// ask lets Redis decide within the deadline, else the fallback.
func (a *Admitter) ask(ctx context.Context, now time.Time, c *call) limit.Decision {
	permit, ok := a.breaker.Acquire(now)
	if !ok {
		return a.fallback(now, c)
	}
	a.present(now, c)
	life := a.memory.life.Load()
	d, took, err := a.take(ctx, c, c.limits)
	end := now.Add(took)
	a.breaker.Done(end, permit, took, err)
	if err != nil {
		a.metrics.failed(took)
		a.unsettled(c)
		return a.fallback(end, c)
	}
	a.metrics.asked(took)
	at := a.since(end)
	a.local.Observe(end, c.limits, &d, a.terms(c))
	if i := c.limitOf(&d); i >= 0 {
		if d.Outcome == limit.Refused {
			a.memory.deny(c, i, &d, at)
		} else if c.hot[i] != nil && d.Outcome == limit.Allowed {
			c.hot[i].denial.Store(nil)
		}
	}
	if c.ahead {
		for i := range c.limits {
			if c.hot[i] != nil {
				c.hot[i].landed(c, i, &d, at, life)
			}
		}
		d.Remaining += d.Ahead
	}
	return d
}

// present adds to the limits what this instance owes of them and the tokens it took ahead under rules now outdated.
func (a *Admitter) present(now time.Time, c *call) {
	for i := range c.limits {
		lim := &c.limits[i]
		lim.Owed = a.local.Claim(now, lim.Key)
		if c.hot[i] == nil {
			continue
		}
		if b := c.hot[i].batch.Load(); b != nil && lim.Revision.Newer(b.revision) && b.life == a.memory.life.Load() {
			lim.Owed -= b.left.Swap(0)
		}
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

// take makes the call. It outlives the client, but not the deadline; the time it took is measured by the process's clock,
// as sockets are.
func (a *Admitter) take(ctx context.Context, c *call, limits []bucket.Limit) (limit.Decision, time.Duration, error) {
	if parent := trace.SpanFromContext(ctx); parent.IsRecording() {
		var span trace.Span
		ctx, span = a.opts.Tracer.Start(ctx, "redis", trace.WithSpanKind(trace.SpanKindClient))
		defer span.End()
	}
	began := time.Now()
	c.spend.begin(ctx, began.Add(a.opts.Deadline), a.opts.Deadline)
	d, err := a.store.Take(&c.spend, limits)
	took := time.Since(began)
	if intact := c.spend.end(); !intact || err != nil {
		// Whoever carries the call may still hold its context and limits: this room is not used again.
		c.intact = false
	}
	if err != nil {
		spanFailed(ctx, err)
	}
	return d, took, err
}

// fallback decides without Redis, by what the rules say of errors.
func (a *Admitter) fallback(now time.Time, c *call) limit.Decision {
	strict := &c.limits[0]
	local := c.localRoom[:0]
	for i := range c.limits {
		lim := &c.limits[i]
		switch lim.Rule.OnError {
		case limit.OnErrorDeny:
			return limit.Decision{
				Outcome: limit.Unable, Source: limit.SourceFallback, Key: lim.Key, Rule: lim.Rule, Revision: lim.Revision,
				Share: lim.Base, RetryAfter: a.retryAfter(now), Degraded: true,
			}
		case limit.OnErrorAllow:
		default:
			local = append(local, *lim)
		}
	}
	if len(local) == 0 {
		return limit.Decision{
			Outcome: limit.Allowed, Source: limit.SourceFallback, Key: strict.Key, Rule: strict.Rule, Revision: strict.Revision,
			Share: strict.Base, Degraded: true,
		}
	}
	d := a.local.Take(now, local, a.terms(c))
	if d.Outcome == limit.Unable && d.RetryAfter == 0 {
		d.RetryAfter = a.retryAfter(now)
	}
	return d
}

// retryAfter is when an answer may be had again: the breaker's next trial, at least a second.
func (a *Admitter) retryAfter(now time.Time) time.Duration {
	return max(time.Second, a.breaker.RetryAfter(now))
}
