package ledger

import (
	"testing"
	"time"

	"partidor.dev/partidor/shared/limit"
)

// The rebalancer plans and explains by the rule that gateways enforce: shadow, ended and deleted ones hand on to the next match.
func TestLookupMatchesAsGatewaysDo(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	rule := func(capacity int64, mode limit.Mode) *limit.Rule {
		return &limit.Rule{Capacity: capacity, Refill: 1, PeriodSeconds: 1, Mode: mode}
	}
	ended := rule(9, limit.Enforce)
	ended.ExpiresAt = now
	for _, c := range []struct {
		name          string
		set           func(*Rules)
		route         string
		capacity      int64 // 0: no rule
		tenant, where string
	}{
		{"default", func(*Rules) {}, "r", limit.DefaultRule.Capacity, "", ""},
		{"shadow beside a broader rule", func(r *Rules) { r.Set("t", "r", rule(1, limit.Shadow)); r.Set("*", "r", rule(100, limit.Enforce)) }, "r", 100, "*", "r"},
		{"shadow of the plan beside everybody's", func(r *Rules) {
			r.SetPlan("t", "gold")
			r.Set("@gold", "*", rule(1, limit.Shadow))
			r.Set("*", "*", rule(100, limit.Enforce))
		}, "r", 100, "*", "*"},
		{"shadow alone", func(r *Rules) { r.Set("t", "r", rule(1, limit.Shadow)) }, "r", 1, "t", "r"},
		{"two shadows", func(r *Rules) { r.Set("t", "r", rule(1, limit.Shadow)); r.Set("t", "*", rule(2, limit.Shadow)) }, "r", 1, "t", "r"},
		{"ended", func(r *Rules) { r.Set("t", "r", ended); r.Set("t", "*", rule(5, limit.Enforce)) }, "r", 5, "t", "*"},
		{"deleted", func(r *Rules) {
			r.Set("t", "r", rule(9, limit.Enforce))
			r.Set("*", "r", rule(5, limit.Enforce))
			r.Delete("t", "r")
		}, "r", 5, "*", "r"},
		{"the tenant as a whole has no default", func(*Rules) {}, limit.TenantRoute, 0, "", ""},
		{"nor a wildcard", func(r *Rules) { r.Set("t", "*", rule(5, limit.Enforce)) }, limit.TenantRoute, 0, "", ""},
		{"but a shadow", func(r *Rules) { r.Set("*", limit.TenantRoute, rule(5, limit.Shadow)) }, limit.TenantRoute, 5, "*", limit.TenantRoute},
	} {
		t.Run(c.name, func(t *testing.T) {
			rules := NewRules()
			c.set(rules)
			m := rules.Lookup(limit.Key{Tenant: "t", Route: c.route}, now)
			got := int64(0)
			if m.Rule != nil {
				got = m.Rule.Capacity
			}
			if got != c.capacity || m.Tenant != c.tenant || m.Route != c.where {
				t.Errorf("capacity %d of %s/%s, want %d of %s/%s", got, m.Tenant, m.Route, c.capacity, c.tenant, c.where)
			}
		})
	}
}
