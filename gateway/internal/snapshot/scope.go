package snapshot

import (
	"hash/maphash"

	"partidor.dev/partidor/shared/limit"
)

// indexFrom is the number of rules in one scope from which a map beats walking them.
const indexFrom = 8

// scope is what is known of one tenant, of one plan (name @plan) or of everybody (name *).
type scope struct {
	name string
	// plan is the scope name of a tenant's plan, empty without one; planRevision is when that was last said.
	plan         string
	planRevision limit.Revision
	rules        []routeRule
	index        map[string]int // route -> rules, from indexFrom on
}

// routeRule is a scope's word on one route, or on all others where route is the wildcard.
type routeRule struct {
	route string
	// rule is nil where it has been deleted (a tombstone) or never existed (only moved is known).
	rule     *limit.Rule
	revision limit.Revision
	// moved tells that the key (scope, route) has had its share moved.
	moved bool
}

// said tells whether there has been any word on the rule, a deletion included.
func (r *routeRule) said() bool { return r.rule != nil || r.revision != limit.Revision{} }

func hashOf(name string) uint64 { return maphash.String(seed, name) }

// find is the scope's word on route, nil for none.
func (s *scope) find(route string) *routeRule {
	if s.index != nil {
		if i, ok := s.index[route]; ok {
			return &s.rules[i]
		}
		return nil
	}
	for i := range s.rules {
		if s.rules[i].route == route {
			return &s.rules[i]
		}
	}
	return nil
}

// clone copies what an edit may change.
func (s *scope) clone() *scope {
	c := *s
	c.rules = append(make([]routeRule, 0, len(s.rules)+1), s.rules...)
	c.index = nil
	return &c
}

// at is the place of route in a scope that is being edited, added where missing.
func (s *scope) at(route string) *routeRule {
	if s.index == nil && len(s.rules) >= indexFrom {
		s.reindex()
	}
	if r := s.find(route); r != nil {
		return r
	}
	s.rules = append(s.rules, routeRule{route: route})
	if s.index != nil {
		s.index[route] = len(s.rules) - 1
	}
	return &s.rules[len(s.rules)-1]
}

func (s *scope) reindex() {
	s.index = make(map[string]int, len(s.rules)+1)
	for i := range s.rules {
		s.index[s.rules[i].route] = i
	}
}
