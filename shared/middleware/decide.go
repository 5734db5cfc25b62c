package middleware

import (
	"context"
	"time"

	"partidor.dev/partidor/shared/bucket"
	"partidor.dev/partidor/shared/fallback"
	"partidor.dev/partidor/shared/limit"
)

// decide takes cost of key's limit. It never fails; limited is false where no limit holds.
func (m *Middleware) decide(ctx context.Context, key limit.Key, cost int64) (d limit.Decision, limited bool) {
	rule := m.opts.Rule(key)
	if rule == nil || rule.Mode == limit.Unlimited || cost <= 0 && rule.Mode != limit.Block {
		return d, false
	}
	if rule.Mode == limit.Block {
		return limit.Decision{Outcome: limit.Blocked, Source: limit.SourceRule, Key: key, Rule: rule}, true
	}
	limits := []bucket.Limit{{Key: key, Rule: rule, Revision: rule.Revision, Base: m.opts.Share, Cost: cost}}
	d = m.ask(ctx, limits)
	if rule.Mode == limit.Shadow {
		return d, false
	}
	return d, true
}

// ask decides in the store, or without it where it fails, is late or is given a rest.
func (m *Middleware) ask(ctx context.Context, limits []bucket.Limit) limit.Decision {
	terms := fallback.Terms{Instances: max(1, m.opts.Instances)}
	began := time.Now()
	if permit, ok := m.breaker.Acquire(began); ok {
		if m.local.Owing() {
			limits[0].Owed = m.local.Claim(began, limits[0].Key)
		}
		// A spend outlives the client, or its reply would be lost with it, but not its own deadline.
		bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), m.opts.Deadline)
		d, err := m.opts.Store.Take(bounded, limits)
		cancel()
		now := time.Now()
		m.breaker.Done(now, permit, now.Sub(began), err)
		if err == nil {
			m.local.Observe(now, limits, &d, terms)
			return d
		}
		limits[0].Owed = 0
	}
	return m.without(limits, terms)
}

// without decides by the rule's on_error.
func (m *Middleware) without(limits []bucket.Limit, terms fallback.Terms) limit.Decision {
	l := &limits[0]
	d := limit.Decision{Source: limit.SourceFallback, Key: l.Key, Rule: l.Rule, Revision: l.Revision, Share: l.Base, Degraded: true}
	switch l.Rule.OnError {
	case limit.OnErrorAllow:
		d.Rule = nil // Nothing is known that headers could tell.
		return d
	case limit.OnErrorDeny:
		d.Outcome = limit.Unable
		return d
	default:
		return m.local.Take(time.Now(), limits, terms)
	}
}
