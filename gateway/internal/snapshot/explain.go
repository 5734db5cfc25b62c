package snapshot

import "partidor.dev/partidor/shared/limit"

// Step is one place where a look-up asks for a rule.
type Step struct {
	Scope         string
	Tenant, Route string
	// Rule is nil where there is none; Revision then tells of a deletion, or is zero.
	Rule     *limit.Rule
	Revision limit.Revision
}

// Explain is every place that Lookup would ask for (tenant, route), in order, up to the one that answers; rules in shadow
// mode are passed by. The last step of a key that no rule matches is the default.
func (s *Snapshot) Explain(tenant, route string) []Step {
	places := []Step{
		{Scope: ScopeTenantRoute, Tenant: tenant, Route: route},
		{Scope: ScopeTenant, Tenant: tenant, Route: limit.Wildcard},
	}
	if p, ok := s.Plan(tenant); ok && p.Plan != "" {
		plan := limit.PlanPrefix + p.Plan
		places = append(places, Step{Scope: ScopePlanRoute, Tenant: plan, Route: route}, Step{Scope: ScopePlan, Tenant: plan, Route: limit.Wildcard})
	}
	places = append(places, Step{Scope: ScopeRoute, Tenant: limit.Wildcard, Route: route}, Step{Scope: ScopeEverybody, Tenant: limit.Wildcard, Route: limit.Wildcard})
	var asked []Step
	shadowed := false
	for _, p := range places {
		if route == limit.TenantRoute && p.Route == limit.Wildcard {
			continue
		}
		if e, ok := s.Rule(p.Tenant, p.Route); ok {
			p.Rule, p.Revision = e.Rule, e.Revision
		}
		asked = append(asked, p)
		if p.Rule != nil && p.Rule.Mode != limit.Shadow {
			return asked
		}
		shadowed = shadowed || p.Rule != nil
	}
	if shadowed || route == limit.TenantRoute {
		return asked
	}
	return append(asked, Step{Scope: ScopeDefault, Rule: s.defaultRule, Revision: s.defaultRule.Revision})
}
