package admit

import (
	"time"

	"partidor.dev/partidor/shared/limit"
)

// fallback decides without Redis, by what the rules say of errors: deny refuses, whatever else holds; local limits; allow lets
// pass, but keeps count, so that what is told and owed afterwards is as near the truth as it can be.
func (a *Admitter) fallback(now time.Time, c *call) limit.Decision {
	local, terms := c.localRoom[:0], a.terms(c.limits)
	for i := range c.limits {
		switch lim := &c.limits[i]; lim.Rule.OnError {
		case limit.OnErrorDeny:
			return limit.Decision{
				Outcome: limit.Unable, Source: limit.SourceFallback, Key: lim.Key, Rule: lim.Rule, Revision: lim.Revision,
				Share: lim.Base, RetryAfter: a.retryAfter(now, c), Degraded: true,
			}
		case limit.OnErrorAllow:
		default:
			local = append(local, *lim)
		}
	}
	var d limit.Decision
	if len(local) > 0 {
		if d = a.local.Take(now, local, terms); d.Outcome != limit.Allowed {
			if d.Outcome == limit.Unable && d.RetryAfter == 0 {
				d.RetryAfter = a.retryAfter(now, c)
			}
			return d
		}
	}
	for i := range c.limits {
		if c.limits[i].Rule.OnError != limit.OnErrorAllow {
			continue
		}
		one := append(c.localRoom[:0], c.limits[i])
		if passed := a.local.Take(now, one, terms); d.Rule == nil || passed.Remaining < d.Remaining {
			d = passed
			d.Outcome, d.RetryAfter = limit.Allowed, 0
		}
	}
	return d
}

// retryAfter is when an answer may be had again: the breaker's next trial, at least a second.
func (a *Admitter) retryAfter(now time.Time, c *call) time.Duration {
	return max(time.Second, a.nodes.of(&c.limits[0]).RetryAfter(now))
}
