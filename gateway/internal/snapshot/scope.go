package snapshot

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"partidor.dev/partidor/shared/limit"
)

// fewRoutes is how many rules of a scope lie within the scope itself, so that a look-up goes from the tenant to its rule over
// two places in memory and no third; more lie apart, in order.
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
	name string
	few  [fewRoutes]routeRule // the first rules, in no order; unused places have no route
	more []routeRule          // further ones by route
	// plan is the scope name of a tenant's plan, empty without one; planRevision is when that was last said.
	plan         string
	planRevision limit.Revision
}

// routeRule is a scope's word on one route, or on all others for anyRoute. There are as many as rules, so it is small.
type routeRule struct {
	route routeID
	// state is the own region's share before the key (scope, route) was first moved, and the part of it that the region always
	// keeps, with the flags below.
	state uint32
	// word is what was said last: a rule, or of a deleted one (see gone) what is left, its revision. Nil where nothing was
	// ever said and only moved is known.
	word *limit.Rule
}

const (
	movedFlag   uint32 = 1 << 31   // the key has had its share moved
	deletedFlag uint32 = 1 << 30   // word is that of a deleted or ended rule
	baseBits    uint32 = 1<<20 - 1 // limit.Whole fits
	floorShift         = 20
	floorBits   uint32 = (deletedFlag - 1) &^ baseBits
	// floorSteps divide the base share: the floor is kept in so many steps, rounded down, plus one; 0 is a floor not known.
	floorSteps = 1000
)

func (r *routeRule) moved() bool { return r.state&movedFlag != 0 }

func (r *routeRule) base() limit.Share { return limit.Share(r.state & baseBits) }

func (r *routeRule) move(base limit.Share) {
	r.state = r.state&^(baseBits|floorBits) | movedFlag | uint32(base)&baseBits
}

// floor is what the region always keeps of the moved key; known is false where that has not been said.
func (r *routeRule) floor() (floor limit.Share, known bool) {
	steps := limit.Share(r.state & floorBits >> floorShift)
	if steps == 0 {
		return 0, false
	}
	return r.base() * (steps - 1) / floorSteps, true
}

func (r *routeRule) keep(floor limit.Share) {
	steps := uint32(1)
	if base := r.base(); base > 0 {
		steps += uint32(max(0, min(floor, base)) * floorSteps / base)
	}
	r.state = r.state&^floorBits | steps<<floorShift
}

// rule is nil where it has been deleted or never existed.
func (r *routeRule) rule() *limit.Rule {
	if r.state&deletedFlag != 0 {
		return nil
	}
	return r.word
}

// revision is when anything was last said of the rule, zero for never.
func (r *routeRule) revision() limit.Revision {
	if r.word == nil {
		return limit.Revision{}
	}
	return r.word.Revision
}

func (r *routeRule) say(rule *limit.Rule) {
	r.word = rule
	r.state &^= deletedFlag
}

// end makes the rule a deleted one; what was said last keeps counting by its revision.
func (r *routeRule) end() { r.state |= deletedFlag }

// find is the scope's word on route, nil for none.
func (s *scope) find(route routeID) *routeRule {
	if route == noRoute {
		return nil
	}
	for i := range s.few {
		if s.few[i].route == route {
			return &s.few[i]
		}
	}
	if i, ok := s.place(route); ok {
		return &s.more[i]
	}
	return nil
}

// place is where route is, or belongs, among the rules that lie apart.
func (s *scope) place(route routeID) (int, bool) {
	return slices.BinarySearchFunc(s.more, route, func(r routeRule, id routeID) int { return cmp.Compare(r.route, id) })
}

// clone copies what an edit may change.
func (s *scope) clone() *scope {
	c := *s
	c.more = slices.Clone(s.more)
	return &c
}

// at is the place of route in a scope that is being edited, added where missing. It is good until the next call.
func (s *scope) at(route routeID) *routeRule {
	if r := s.find(route); r != nil {
		return r
	}
	for i := range s.few {
		if s.few[i].route == noRoute {
			s.few[i].route = route
			return &s.few[i]
		}
	}
	i, _ := s.place(route)
	s.more = slices.Insert(s.more, i, routeRule{route: route})
	return &s.more[i]
}

// each calls f for every word of the scope until it returns false, and tells whether none did.
func (s *scope) each(f func(*routeRule) bool) bool {
	for _, rules := range [][]routeRule{s.few[:], s.more} {
		for i := range rules {
			if rules[i].route != noRoute && !f(&rules[i]) {
				return false
			}
		}
	}
	return true
}
