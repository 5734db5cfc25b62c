package admit

import (
	"time"

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
	// homes are the first homes of limits that are tiny, empty for those that are divided; tiny tells that there are any.
	homes [mostLimits]string
	tiny  bool
	// ahead: every limit allows prefetch.
	ahead bool
	// failed: Redis was asked and did not decide.
	failed bool
	// intact is false once somebody else may still be using this room.
	intact bool

	spend      *spend // nil before the first call to the store
	limitRoom  [mostLimits]bucket.Limit
	shadowRoom [mostLimits]bucket.Limit
	localRoom  [mostLimits]bucket.Limit
}

// find fills the call with the limits that hold for req, or answers where the rules alone decide: block first, then
// unlimited (also by cost 0).
func (c *call) find(snap *snapshot.Snapshot, now time.Time, req *Request) (limit.Decision, bool) {
	c.limits, c.shadows, c.ahead, c.failed, c.tiny = c.limitRoom[:0], c.shadowRoom[:0], true, false, false
	route := snap.Lookup(req.Tenant, req.Route)
	tenant := snap.Lookup(req.Tenant, limit.TenantRoute)
	if c.add(snap, now, req.Route, req, &route) {
		return byRule(limit.Blocked, req.Tenant, req.Route, &route), true
	}
	if tenant.Rule != nil && c.add(snap, now, limit.TenantRoute, req, &tenant) {
		return byRule(limit.Blocked, req.Tenant, limit.TenantRoute, &tenant), true
	}
	if req.Cost == 0 {
		c.limits, c.shadows = c.limits[:0], c.shadows[:0]
	}
	if len(c.limits) == 0 {
		return byRule(limit.Allowed, req.Tenant, req.Route, &route), true
	}
	return limit.Decision{}, false
}

// byRule is an answer that no bucket is needed for.
func byRule(o limit.Outcome, tenant, route string, m *snapshot.Match) limit.Decision {
	return limit.Decision{
		Outcome: o, Source: limit.SourceRule,
		Key: limit.Key{Tenant: tenant, Route: route}, Rule: m.Rule, Revision: m.Revision, Share: m.Base,
	}
}

// add takes up one match by its mode and tells whether it blocks.
func (c *call) add(snap *snapshot.Snapshot, now time.Time, route string, req *Request, m *snapshot.Match) (blocks bool) {
	if m.Shadow != nil {
		c.shadow(snap, route, req, m, m.Shadow)
	}
	switch m.Rule.Mode {
	case limit.Block:
		return true
	case limit.Unlimited:
		return false
	case limit.Shadow:
		c.shadow(snap, route, req, m, m.Rule)
		return false
	}
	c.ahead = c.ahead && m.Rule.Prefetch && m.Rule.Shards <= 1
	n := len(c.limits)
	c.limits = c.limits[:n+1]
	c.homes[n] = m.Home
	c.tiny = c.tiny || m.Home != ""
	lim := &c.limits[n]
	lim.Key.Tenant, lim.Key.Route = req.Tenant, route
	lim.Rule, lim.Revision, lim.Base, lim.Floor, lim.Moved = m.Rule, m.Revision, m.Base, m.Floor, m.Moved
	lim.Late = snap.Late(m, now)
	lim.Cost, lim.Owed, lim.Ahead = req.Cost, 0, 0
	return false
}

// shadow adds a limit that is only counted, in a bucket of its own. That one never moves: the base split counts, or the whole
// limit in every region where a part would be too small to admit anything.
func (c *call) shadow(snap *snapshot.Snapshot, route string, req *Request, m *snapshot.Match, rule *limit.Rule) {
	base := snap.Base()
	if rule.Tiny(len(snap.Regions())) {
		base = limit.Whole
	}
	c.shadows = append(c.shadows, bucket.Limit{
		Key: limit.Key{Tenant: req.Tenant, Route: shadowPrefix + route}, Rule: rule, Revision: m.Revision,
		Base: base, Floor: snap.Floor(), Cost: req.Cost,
	})
}

// dear answers a request that costs more than one of its limits declares any to cost.
func (c *call) dear(d *limit.Decision) bool {
	for i := range c.limits {
		if lim := &c.limits[i]; lim.Rule.TooLarge(lim.Cost) {
			*d = limit.Decision{
				Outcome: limit.TooLarge, Source: limit.SourceRule, Key: lim.Key, Rule: lim.Rule, Revision: lim.Revision, Share: lim.Base,
			}
			return true
		}
	}
	return false
}

// beyond makes a refusal that no waiting ends what it is: the cost is above this region's slice, and the shares of such a limit
// do not move for requests dearer than it declares.
func (c *call) beyond(regions int, d *limit.Decision) {
	if d.Outcome != limit.Refused || !d.Rule.Still(regions) {
		return
	}
	i := c.limitOf(d)
	if i < 0 || c.limits[i].Cost <= d.Rule.LargestCost() || float64(c.limits[i].Cost) <= d.Rule.SliceOf(d.Share).Capacity {
		return
	}
	d.Outcome, d.RetryAfter = limit.TooLarge, 0
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
