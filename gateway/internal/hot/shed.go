package hot

import (
	"hash/maphash"
	"sync"
	"time"

	"github.com/failsafe-go/failsafe-go/bulkhead"

	"partidor.dev/partidor/gateway/internal/hot/respond"
)

// shedder bounds the requests of one route in flight, all together and per tenant: a rate limit alone does not protect
// an upstream that has become slow.
type shedder struct {
	all       bulkhead.Bulkhead[any] // nil: no bound
	perTenant *tenantLoads           // nil: no bound
}

func newShedder(all, perTenant int) *shedder {
	if all <= 0 && perTenant <= 0 {
		return nil
	}
	s := &shedder{}
	if all > 0 {
		s.all = bulkhead.New[any](uint(all))
	}
	if perTenant > 0 {
		s.perTenant = newTenantLoads(perTenant)
	}
	return s
}

func nothing() {}

// enter counts the request in flight, or answers 503. release is to be called at its end.
func (x *exchange) enter() (release func(), ok bool) {
	s := x.route.shedder
	if s == nil {
		return nothing, true
	}
	tenant := x.limitedAs()
	if s.perTenant != nil && !s.perTenant.enter(tenant) {
		x.refuse(respond.Overloaded, time.Second)
		return nil, false
	}
	if s.all != nil && !s.all.TryAcquirePermit() {
		if s.perTenant != nil {
			s.perTenant.leave(tenant)
		}
		x.refuse(respond.Overloaded, time.Second)
		return nil, false
	}
	return func() {
		if s.all != nil {
			s.all.ReleasePermit()
		}
		if s.perTenant != nil {
			s.perTenant.leave(tenant)
		}
	}, true
}

// tenantLoads counts requests in flight per tenant. Only tenants that have some are remembered.
type tenantLoads struct {
	most   int
	seed   maphash.Seed
	shards [64]struct {
		mu    sync.Mutex
		loads map[string]int
	}
}

func newTenantLoads(most int) *tenantLoads {
	l := &tenantLoads{most: most, seed: maphash.MakeSeed()}
	for i := range l.shards {
		l.shards[i].loads = map[string]int{}
	}
	return l
}

func (l *tenantLoads) enter(tenant string) bool {
	s := &l.shards[maphash.String(l.seed, tenant)%uint64(len(l.shards))]
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.loads[tenant] >= l.most {
		return false
	}
	s.loads[tenant]++
	return true
}

func (l *tenantLoads) leave(tenant string) {
	s := &l.shards[maphash.String(l.seed, tenant)%uint64(len(l.shards))]
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.loads[tenant]--; s.loads[tenant] == 0 {
		delete(s.loads, tenant)
	}
}
