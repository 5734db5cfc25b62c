package rulesfile

import (
	"fmt"

	"partidor.dev/partidor/shared/config"
	"partidor.dev/partidor/shared/limit"
)

// shardFaults finds sharded rules that may be charged together with a limit over all of a tenant's routes: those live in
// one slot, shards in many. Plans count as everybody, since their tenants may change.
func (f *File) shardFaults(all *config.Faults) {
	whole := map[string]bool{}
	any := false
	for i := range f.Rules {
		if f.Rules[i].Route == limit.TenantRoute {
			tenant := f.Rules[i].Tenant
			whole[tenant] = true
			_, plan := cutPlan(tenant)
			any = any || plan || tenant == limit.Wildcard
		}
	}
	if len(whole) == 0 {
		return
	}
	for i := range f.Rules {
		r := &f.Rules[i]
		_, plan := cutPlan(r.Tenant)
		if r.Shards > 1 && r.Route != limit.TenantRoute && (any || whole[r.Tenant] || plan || r.Tenant == limit.Wildcard) {
			all.Add(fmt.Sprintf("rules[%d].shards", i), "cannot be charged together with a rule of route %s that may concern the same tenant", limit.TenantRoute)
		}
	}
}
