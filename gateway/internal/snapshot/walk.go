package snapshot

import (
	"iter"
	"strings"

	"partidor.dev/partidor/shared/limit"
)

// RuleEntry is one word on a rule: what holds for (tenant, route), or since when nothing does (Rule nil).
type RuleEntry struct {
	Tenant, Route string
	Rule          *limit.Rule
	Revision      limit.Revision
}

// PlanEntry is the plan of a tenant, empty for none.
type PlanEntry struct {
	Tenant, Plan string
	Revision     limit.Revision
}

// Rules is every rule and tombstone, in no order.
func (s *Snapshot) Rules() iter.Seq[RuleEntry] {
	return func(yield func(RuleEntry) bool) {
		s.eachScope(func(sc *scope) bool {
			return sc.each(func(r *routeRule) bool {
				return r.word == nil || yield(RuleEntry{sc.name, s.routes.names[r.route], r.rule(), r.revision()})
			})
		})
	}
}

// Plans is every tenant that the ledger has spoken of, in no order.
func (s *Snapshot) Plans() iter.Seq[PlanEntry] {
	return func(yield func(PlanEntry) bool) {
		s.scopes.each(func(sc *scope) bool {
			e, ok := sc.planEntry()
			return !ok || yield(e)
		})
	}
}

// Plan is what has been said of a tenant's plan; ok is false where nothing ever was.
func (s *Snapshot) Plan(tenant string) (e PlanEntry, ok bool) {
	sc := s.tenant(tenant)
	if sc == nil {
		return PlanEntry{}, false
	}
	return sc.planEntry()
}

func (s *scope) planEntry() (PlanEntry, bool) {
	if s.planRevision == (limit.Revision{}) {
		return PlanEntry{}, false
	}
	return PlanEntry{s.name, strings.TrimPrefix(s.plan, limit.PlanPrefix), s.planRevision}, true
}

// APIKeys is every credential by its SHA-256, in no order.
func (s *Snapshot) APIKeys() iter.Seq2[[32]byte, APIKey] {
	return func(yield func([32]byte, APIKey) bool) {
		s.keys.each(func(k *apiKey) bool { return yield(k.hash, k.APIKey) })
	}
}

// Moved is every key known to have moved and the own region's recorded base share of it, in no order.
func (s *Snapshot) Moved() iter.Seq2[limit.Key, limit.Share] {
	return func(yield func(limit.Key, limit.Share) bool) {
		s.scopes.each(func(sc *scope) bool {
			return sc.each(func(r *routeRule) bool {
				return !r.moved() || yield(limit.Key{Tenant: sc.name, Route: s.routes.names[r.route]}, r.base())
			})
		})
	}
}

// MovedFloor is what the own region always keeps of a key that has moved; known is false where that has not been said.
func (s *Snapshot) MovedFloor(key limit.Key) (floor limit.Share, known bool) {
	sc := findScope(&s.scopes, key.Tenant)
	if sc == nil {
		return 0, false
	}
	r := sc.find(s.routes.ids[key.Route])
	if r == nil || !r.moved() {
		return 0, false
	}
	return r.floor()
}

// Rule is exactly what has been said of (tenant, route), without precedence. The rule is nil after a deletion; ok is
// false where nothing was ever said.
func (s *Snapshot) Rule(tenant, route string) (e RuleEntry, ok bool) {
	sc := s.everybody
	if tenant != limit.Wildcard {
		sc = findScope(&s.scopes, tenant)
	}
	if sc == nil {
		return RuleEntry{}, false
	}
	r := sc.find(s.routes.ids[route])
	if r == nil || r.word == nil {
		return RuleEntry{}, false
	}
	return RuleEntry{tenant, route, r.rule(), r.revision()}, true
}

// APIKey is what is known of the credential with this SHA-256, usable or not.
func (s *Snapshot) APIKey(hash [32]byte) (APIKey, bool) {
	k := s.apiKey(hash)
	if k == nil {
		return APIKey{}, false
	}
	return k.APIKey, true
}

func (s *Snapshot) eachScope(f func(*scope) bool) {
	if f(s.everybody) {
		s.scopes.each(f)
	}
}
