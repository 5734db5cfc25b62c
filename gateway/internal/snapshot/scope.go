package snapshot

import (
	"maps"
	"strings"

	"partidor.dev/partidor/shared/limit"
)

// fewRoutes is how many rules of a scope are found by walking their numbers, which fit beside the scope's name into one
// cache line; more are found by a map.
const fewRoutes = 6

// routeID stands for a route's name within a snapshot: there are many rules but few routes, and numbers compare faster.
type routeID uint32

// The wildcard is known to every snapshot, anything else from its first mention on.
const (
	noRoute  routeID = 0
	anyRoute routeID = 1
)

// routes gives every route name a number. It is immutable once published.
type routes struct {
	ids   map[string]routeID
	names []string // by routeID
}

func newRoutes() *routes {
	return &routes{ids: map[string]routeID{limit.Wildcard: anyRoute}, names: []string{"", limit.Wildcard}}
}

// with is a copy that knows name too.
func (r *routes) with(name string) *routes {
	name = strings.Clone(name)
	next := &routes{ids: maps.Clone(r.ids), names: append(r.names[:len(r.names):len(r.names)], name)}
	next.ids[name] = routeID(len(r.names))
	return next
}

// scope is what is known of one tenant, of one plan (name @plan) or of everybody (name *).
type scope struct {
	name  string
	rules []routeRule
	few   [fewRoutes]routeID // of rules in the same order, where there are few
	index map[routeID]int    // route -> place in rules, where there are more
	// plan is the scope name of a tenant's plan, empty without one; planRevision is when that was last said.
	plan         string
	planRevision limit.Revision
}

// routeRule is a scope's word on one route, or on all others for anyRoute.
type routeRule struct {
	route routeID
	// moved tells that the key (scope, route) has had its share moved; base is the own region's share before that.
	moved bool
	base  uint32
	// rule is nil where it has been deleted (a tombstone) or never existed (only moved is known).
	rule     *limit.Rule
	revision limit.Revision
}

// said tells whether there has been any word on the rule, a deletion included.
func (r *routeRule) said() bool { return r.rule != nil || r.revision != limit.Revision{} }

// find is the scope's word on route, nil for none.
func (s *scope) find(route routeID) *routeRule {
	if s.index != nil {
		if i, ok := s.index[route]; ok {
			return &s.rules[i]
		}
		return nil
	}
	for i := range s.few {
		if s.few[i] == route && i < len(s.rules) {
			return &s.rules[i]
		}
	}
	for i := fewRoutes; i < len(s.rules); i++ { // a copy that has no index yet
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
func (s *scope) at(route routeID) *routeRule {
	s.reindex()
	if r := s.find(route); r != nil {
		return r
	}
	n := len(s.rules)
	s.rules = append(s.rules, routeRule{route: route})
	switch {
	case s.index != nil:
		s.index[route] = n
	case n < fewRoutes:
		s.few[n] = route
	default:
		s.reindex()
	}
	return &s.rules[n]
}

// reindex makes the index where it is needed and missing.
func (s *scope) reindex() {
	if s.index != nil || len(s.rules) <= fewRoutes {
		return
	}
	s.index = make(map[routeID]int, len(s.rules)+1)
	for i := range s.rules {
		s.index[s.rules[i].route] = i
	}
}
