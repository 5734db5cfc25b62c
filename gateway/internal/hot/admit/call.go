package admit

import (
	"partidor.dev/partidor/gateway/internal/snapshot"
	"partidor.dev/partidor/shared/bucket"
	"partidor.dev/partidor/shared/limit"
)

// mostLimits is how many limits one request can have: its route's and its tenant's.
const mostLimits = 2

// call is the room one decision works in. Calls are pooled, so that deciding allocates nothing.
type call struct {
	// limits are enforced together, all or none; hot is what memory holds of each, nil for nothing.
	limits []bucket.Limit
	hot    [mostLimits]*hot
	// shadows are only counted.
	shadows []bucket.Limit
	// unlimited is the answer if no limit is enforced.
	unlimited limit.Decision
	// ahead: every limit allows prefetch.
	ahead bool
	// intact is false once somebody else may still be using this room.
	intact bool

	spend      *spend // nil before the first call to the store
	limitRoom  [mostLimits]bucket.Limit
	shadowRoom [mostLimits]bucket.Limit
	localRoom  [mostLimits]bucket.Limit
}

// find fills the call with the limits that hold for req, or answers where the rules alone decide.
func (c *call) find(snap *snapshot.Snapshot, req Request) (limit.Decision, bool) {
	c.limits, c.shadows = c.limitRoom[:0], c.shadowRoom[:0]
	c.ahead = true
	route := snap.Lookup(req.Tenant, req.Route)
	c.unlimited = limit.Decision{
		Outcome: limit.Allowed, Source: limit.SourceRule,
		Key: limit.Key{Tenant: req.Tenant, Route: req.Route}, Rule: route.Rule, Revision: route.Revision, Share: route.Base,
	}
	if d, blocked := c.add(snap, req.Route, req, &route); blocked {
		return d, true
	}
	tenant := snap.Lookup(req.Tenant, limit.TenantRoute)
	if tenant.Rule != nil {
		if d, blocked := c.add(snap, limit.TenantRoute, req, &tenant); blocked {
			return d, true
		}
	}
	return c.unlimited, req.Cost == 0
}

// add takes up one match by its mode; it answers only for block.
func (c *call) add(snap *snapshot.Snapshot, route string, req Request, m *snapshot.Match) (limit.Decision, bool) {
	lim := bucket.Limit{
		Key: limit.Key{Tenant: req.Tenant, Route: route}, Rule: m.Rule, Revision: m.Revision,
		Base: m.Base, Floor: snap.Floor(), Moved: m.Moved, Cost: req.Cost,
	}
	switch m.Rule.Mode {
	case limit.Block:
		return limit.Decision{
			Outcome: limit.Blocked, Source: limit.SourceRule, Key: lim.Key, Rule: m.Rule, Revision: m.Revision, Share: m.Base,
		}, true
	case limit.Unlimited:
	case limit.Shadow:
		lim.Key.Route = shadowPrefix + route
		lim.Moved = false
		c.shadows = append(c.shadows, lim)
	default:
		c.limits = append(c.limits, lim)
		c.ahead = c.ahead && m.Rule.Prefetch && m.Rule.Shards <= 1
	}
	return limit.Decision{}, false
}

// remembered looks up what memory holds of the limits.
func (c *call) remembered(m *memory) {
	for i := range c.limits {
		c.hot[i] = m.keys.Get(c.limits[i].Key)
	}
}

// limitOf is the limit that d speaks of, −1 if it is none of them.
func (c *call) limitOf(d *limit.Decision) int {
	for i := range c.limits {
		if c.limits[i].Key == d.Key {
			return i
		}
	}
	return -1
}
