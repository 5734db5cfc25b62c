package snapshot

import "partidor.dev/partidor/shared/limit"

// The scopes of a match, most specific first: which rule decided, in the words of explanations and telemetry.
const (
	ScopeTenantRoute = "tenant/route"
	ScopeTenant      = "tenant/*"
	ScopePlanRoute   = "plan/route"
	ScopePlan        = "plan/*"
	ScopeRoute       = "*/route"
	ScopeEverybody   = "*/*"
	ScopeDefault     = "default"
)

// Match is what holds for one key.
type Match struct {
	// Rule is nil only for limit.TenantRoute where no rule limits the tenant as a whole.
	Rule *limit.Rule
	// Revision is the newest of everything consulted: the rule, more specific ones that were deleted, the tenant's plan
	// and the base split. So a deleted rule hands its keys to the next match under a newer revision.
	Revision limit.Revision
	// Base is the own region's share of the key before any move: today's base share, or of a key that has moved the one
	// recorded then. Floor is what the region always keeps.
	Base, Floor limit.Share
	// Moved tells that the key is known to have moved: rights that are missing then are lost, not absent.
	Moved bool
	// Home is the region where a tiny limit is consumed until it is first moved, empty for limits that are divided.
	Home string
	// Scope is one of the Scope constants.
	Scope string
	// Shadow is a rule in shadow mode that is more specific than Rule: it is counted beside it and decides nothing. Where only
	// rules in shadow mode match, the most specific of them is Rule, and nothing is enforced, not even the default.
	Shadow *limit.Rule

	shadowScope string
}

// Lookup is the most specific rule for (tenant, route): the tenant's own, its plan's, everybody's; in each the route's
// own before the wildcard; else the default. A rule in shadow mode lets the next one decide. The reserved route
// limit.TenantRoute is matched by its own name only.
func (s *Snapshot) Lookup(tenant, route string) Match {
	m := s.lookup(tenant, route)
	if s.homes && m.Rule != nil && m.Rule.Tiny(len(s.regions)) {
		m.gather(s)
	}
	return m
}

// gather gives all of a tiny limit to its home.
func (m *Match) gather(s *Snapshot) {
	m.Home, m.Floor = s.home, 0
	switch {
	case m.Moved: // the base recorded then
	case s.home == s.region:
		m.Base = limit.Whole
	default:
		m.Base = 0
	}
}

func (s *Snapshot) lookup(tenant, route string) Match {
	m := Match{Revision: s.regionsAt, Base: s.base, Floor: s.floor}
	id, any := s.routes.ids[route], anyRoute
	if route == limit.TenantRoute {
		any = noRoute
	}
	if own := s.tenant(tenant); own != nil {
		if r := own.find(id); r != nil {
			if r.moved() {
				m.Moved, m.Base = true, r.base()
				// What it kept at the first move, however the parameter was changed since; nothing while that is not known for certain.
				recorded, _ := r.floor()
				m.Floor = min(m.Floor, recorded)
			}
			if m.consult(r, ScopeTenantRoute) {
				return m
			}
		}
		if r := own.find(any); r != nil && m.consult(r, ScopeTenant) {
			return m
		}
		m.Revision = m.Revision.Max(own.planRevision)
		if own.plan != "" {
			if plan := findScope(&s.scopes, own.plan); plan != nil && m.scope(plan, id, any, ScopePlanRoute, ScopePlan) {
				return m
			}
		}
	}
	if m.scope(s.everybody, id, any, ScopeRoute, ScopeEverybody) {
		return m
	}
	if m.Shadow != nil {
		m.Rule, m.Scope, m.Shadow = m.Shadow, m.shadowScope, nil
		return m
	}
	if route == limit.TenantRoute {
		return m
	}
	m.Rule, m.Scope = s.defaultRule, ScopeDefault
	m.Revision = m.Revision.Max(s.defaultRule.Revision)
	return m
}

// tenant is the scope of a tenant; a plan's name is not one, whoever sends it.
func (s *Snapshot) tenant(name string) *scope {
	if len(name) == 0 || name[0] == limit.PlanPrefix[0] {
		return nil
	}
	return findScope(&s.scopes, name)
}

func (m *Match) scope(s *scope, id, any routeID, exact, wild string) bool {
	if r := s.find(id); r != nil && m.consult(r, exact) {
		return true
	}
	r := s.find(any)
	return r != nil && m.consult(r, wild)
}

// consult takes r into account and tells whether it decides.
func (m *Match) consult(r *routeRule, name string) bool {
	m.Revision = m.Revision.Max(r.revision())
	rule := r.rule()
	if rule == nil {
		return false
	}
	if rule.Mode == limit.Shadow {
		if m.Shadow == nil {
			m.Shadow, m.shadowScope = rule, name
		}
		return false
	}
	m.Rule, m.Scope = rule, name
	return true
}
