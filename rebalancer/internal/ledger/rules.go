package ledger

import (
	"strings"
	"time"

	"partidor.dev/partidor/shared/limit"
)

// Rules is every rule in force, matched as gateways match them (DESIGN §4): the tenant's own, its plan's, everybody's; in
// each the route's own before the wildcard; else the default. It belongs to one goroutine at a time.
type Rules struct {
	Default *limit.Rule
	rules   map[string]map[string]*limit.Rule // tenant -> route -> rule
	plans   map[string]string                 // tenant -> plan
}

// NewRules is an empty set with the default of the program.
func NewRules() *Rules {
	return &Rules{Default: &limit.DefaultRule, rules: make(map[string]map[string]*limit.Rule), plans: make(map[string]string)}
}

// Set says what holds for (tenant, route).
func (r *Rules) Set(tenant, route string, rule *limit.Rule) {
	routes := r.rules[tenant]
	if routes == nil {
		routes = make(map[string]*limit.Rule, 1)
		r.rules[tenant] = routes
	}
	routes[route] = rule
}

// Delete forgets the rule of (tenant, route).
func (r *Rules) Delete(tenant, route string) {
	delete(r.rules[tenant], route)
	if len(r.rules[tenant]) == 0 {
		delete(r.rules, tenant)
	}
}

// SetPlan says which plan a tenant is on; "" is none.
func (r *Rules) SetPlan(tenant, plan string) {
	if plan == "" {
		delete(r.plans, tenant)
		return
	}
	r.plans[tenant] = plan
}

// Plan of a tenant, "" if it has none.
func (r *Rules) Plan(tenant string) string { return r.plans[tenant] }

// Match is the rule of a key and where it came from.
type Match struct {
	Rule *limit.Rule
	// Tenant and Route are those the rule is written for: the key's own, a plan, a wildcard; both "" for the default.
	Tenant, Route string
}

// Lookup finds the rule of key at now; a rule that has expired does not match, one in shadow mode lets the next decide. Where
// only rules in shadow mode match it is the most specific of them: nothing is enforced, not even the default. Rule is nil only
// for limit.TenantRoute where no rule limits the tenant as a whole.
func (r *Rules) Lookup(key limit.Key, now time.Time) Match {
	tenants := [3]string{key.Tenant, "", limit.Wildcard}
	if plan := r.plans[key.Tenant]; plan != "" {
		tenants[1] = limit.PlanPrefix + plan
	}
	if strings.HasPrefix(key.Tenant, limit.PlanPrefix) {
		tenants[0] = "" // a plan's name is no tenant
	}
	var shadow Match
	for _, tenant := range tenants {
		if tenant == "" {
			continue
		}
		for _, route := range [2]string{key.Route, limit.Wildcard} {
			rule := r.rules[tenant][route]
			switch {
			case rule == nil || rule.Expired(now) || route == limit.Wildcard && key.Route == limit.TenantRoute:
			case rule.Mode != limit.Shadow:
				return Match{Rule: rule, Tenant: tenant, Route: route}
			case shadow.Rule == nil:
				shadow = Match{Rule: rule, Tenant: tenant, Route: route}
			}
		}
	}
	if shadow.Rule != nil || key.Route == limit.TenantRoute {
		return shadow
	}
	return Match{Rule: r.Default}
}

// Len is the number of rules.
func (r *Rules) Len() int {
	n := 0
	for _, routes := range r.rules {
		n += len(routes)
	}
	return n
}
