package snapshot

import (
	"fmt"
	"slices"
	"strings"

	"partidor.dev/partidor/shared/limit"
)

// Builder makes the next Snapshot out of one. What it is told with a revision not newer than what is known is ignored, so
// increments may arrive twice, late or out of order. A Builder belongs to one goroutine and ends with Build.
type Builder struct {
	next   Snapshot
	scopes tableEdit[scope]
	keys   tableEdit[apiKey]
	ours   map[*scope]struct{} // scopes already copied by this builder
	plans  map[string]string   // plan -> scope name: many tenants, few plans
	// unsorted tells that next.expiring is this builder's own and not in order.
	unsorted bool
}

// Edit begins a change of s.
func (s *Snapshot) Edit() *Builder {
	return &Builder{
		next:   *s,
		scopes: s.scopes.edit(),
		keys:   s.keys.edit(),
		ours:   make(map[*scope]struct{}),
		plans:  make(map[string]string),
	}
}

// Build is the changed snapshot. The builder must not be used afterwards.
func (b *Builder) Build() *Snapshot {
	b.sortExpiries()
	b.next.scopes = b.scopes.table
	b.next.keys = b.keys.table
	b.ours = nil
	next := b.next
	return &next
}

// SetRule says what holds for (tenant, route); either may be the wildcard, tenant may be a plan with limit.PlanPrefix. The
// rule's own revision counts, and the rule must not change afterwards.
func (b *Builder) SetRule(tenant, route string, rule *limit.Rule) {
	r := b.newer(tenant, route, rule.Revision)
	if r == nil {
		return
	}
	if r.rule() == nil {
		b.next.counts.Rules++
	}
	r.say(rule)
	if !rule.ExpiresAt.IsZero() {
		b.expire(expiry{rule.ExpiresAt, tenant, route, rule})
	}
}

// DeleteRule leaves a tombstone for (tenant, route).
func (b *Builder) DeleteRule(tenant, route string, at limit.Revision) {
	r := b.newer(tenant, route, at)
	if r == nil {
		return
	}
	if r.rule() != nil {
		b.next.counts.Rules--
	}
	r.say(&limit.Rule{Revision: at})
	r.end()
}

// newer is the place of (tenant, route), to be written, or nil where what is known is not older than at.
func (b *Builder) newer(tenant, route string, at limit.Revision) *routeRule {
	b.Reach(at)
	id := b.route(route)
	if s := b.find(tenant); s != nil {
		if r := s.find(id); r != nil && r.word != nil && !at.Newer(r.revision()) {
			return nil
		}
	}
	return b.own(tenant).at(id)
}

// SetPlan says which plan a tenant is on; an empty plan is none, also for a tenant that was deleted.
func (b *Builder) SetPlan(tenant, plan string, at limit.Revision) {
	b.Reach(at)
	known := b.find(tenant)
	if known != nil && known.planRevision != (limit.Revision{}) && !at.Newer(known.planRevision) {
		return
	}
	s := b.own(tenant)
	if s.planRevision == (limit.Revision{}) {
		b.next.counts.Tenants++
	}
	s.plan, s.planRevision = "", at
	if plan != "" {
		s.plan = b.planScope(plan)
	}
}

// SetKey says what the credential with this SHA-256 stands for. A deleted one is set disabled.
func (b *Builder) SetKey(hash [32]byte, key APIKey) {
	b.Reach(key.Revision)
	old := findKey(&b.keys.table, hash)
	if old != nil && !key.Revision.Newer(old.Revision) {
		return
	}
	if s := b.find(key.Tenant); s != nil {
		key.Tenant = s.name
	}
	if old == nil {
		b.next.counts.APIKeys++
	}
	b.keys.put(keyHash(hash), old, &apiKey{hash: hash, APIKey: key})
}

// MarkMoved notes that key's share has been moved, and the base share that the own region had of it before. Neither is ever
// taken back: the first word counts.
func (b *Builder) MarkMoved(key limit.Key, base limit.Share) {
	id := b.route(key.Route)
	if s := b.find(key.Tenant); s != nil {
		if r := s.find(id); r != nil && r.moved() {
			return
		}
	}
	b.next.counts.Moved++
	b.own(key.Tenant).at(id).move(base)
}

// MarkFloor notes what the own region always keeps of a key that has moved, as recorded with its rights; it is kept a little
// rounded down. It never rises, and counts for nothing before MarkMoved.
func (b *Builder) MarkFloor(key limit.Key, floor limit.Share) {
	id := b.route(key.Route)
	s := b.find(key.Tenant)
	if s == nil {
		return
	}
	r := s.find(id)
	if r == nil || !r.moved() {
		return
	}
	next := *r
	next.keep(floor)
	if known, ok := r.floor(); ok {
		if least, _ := next.floor(); least >= known {
			return
		}
	}
	b.own(key.Tenant).at(id).keep(floor)
}

// SetRegions declares the regions of the deployment. Refused unless the base split adds up to at most limit.Whole and
// names the gateway's own region.
func (b *Builder) SetRegions(regions []Region, at limit.Revision) error {
	b.Reach(at)
	if len(b.next.regions) > 0 && b.next.regionsAt.Newer(at) {
		return nil
	}
	var own *Region
	sum := limit.Share(0)
	names := make([]string, 0, len(regions))
	for i := range regions {
		r := &regions[i]
		if slices.Contains(names, r.Name) {
			return fmt.Errorf("regions: %s is declared twice", r.Name)
		}
		if r.Base < 0 || r.Base > limit.Whole || r.Floor < 0 || r.Floor > limit.Whole {
			return fmt.Errorf("regions: %s: base %d and floor %d, must be from 0 to %d", r.Name, r.Base, r.Floor, limit.Whole)
		}
		sum += r.Base
		names = append(names, r.Name)
		if r.Name == b.next.region {
			own = r
		}
	}
	if sum > limit.Whole {
		return fmt.Errorf("regions: base shares add up to %d, at most %d", sum, limit.Whole)
	}
	if own == nil {
		return fmt.Errorf("regions: this gateway's region %q is not among %q", b.next.region, names)
	}
	b.next.regions = slices.Clone(regions)
	slices.SortFunc(b.next.regions, func(a, c Region) int { return strings.Compare(a.Name, c.Name) })
	b.next.base, b.next.floor, b.next.regionsAt = own.Base, own.Floor, at
	split := limit.Split{}
	for i := range regions {
		split[regions[i].Name] = regions[i].Base
	}
	b.next.home, b.next.changing = split.Home(), sum < limit.Whole
	b.next.past = pastOf(b.next.region, b.next.home, b.next.regions)
	return nil
}

// SetControl says in which failure domain the control plane stands.
func (b *Builder) SetControl(domain string) { b.next.control = domain }

// SetFastLoop switches what regions do between themselves on (as it is in an empty snapshot) or off.
func (b *Builder) SetFastLoop(on bool) { b.next.slow = !on }

// SetDefault says what holds where no rule matches. The rule must not change afterwards.
func (b *Builder) SetDefault(rule *limit.Rule) {
	b.Reach(rule.Revision)
	b.next.defaultRule = rule
}

// SetShadow turns the kill switch.
func (b *Builder) SetShadow(on bool) { b.next.shadow = on }

// SetStale marks a snapshot whose source is away.
func (b *Builder) SetStale(stale bool) { b.next.stale = stale }

// Reach notes that everything up to at has been seen.
func (b *Builder) Reach(at limit.Revision) { b.next.revision = b.next.revision.Max(at) }

func (b *Builder) find(name string) *scope {
	if name == limit.Wildcard {
		return b.next.everybody
	}
	return findScope(&b.scopes.table, name)
}

// own is the scope of name, copied or made for this builder.
func (b *Builder) own(name string) *scope {
	old := b.find(name)
	if _, ours := b.ours[old]; ours && old != nil {
		return old
	}
	var s *scope
	if old != nil {
		s = old.clone()
	} else {
		s = &scope{name: strings.Clone(name)}
	}
	b.ours[s] = struct{}{}
	if name == limit.Wildcard {
		b.next.everybody = s
	} else {
		b.scopes.put(hashOf(name), old, s)
	}
	return s
}

func (b *Builder) route(name string) routeID {
	id, ok := b.next.routes.ids[name]
	if !ok {
		b.next.routes = b.next.routes.with(name)
		id = b.next.routes.ids[name]
	}
	return id
}

func (b *Builder) planScope(plan string) string {
	s, ok := b.plans[plan]
	if !ok {
		s = limit.PlanPrefix + plan
		b.plans[plan] = s
	}
	return s
}
