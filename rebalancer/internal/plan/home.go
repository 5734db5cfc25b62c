package plan

import (
	"slices"

	"partidor.dev/partidor/shared/limit"
)

// A tiny limit cannot be cut into slices that each still admit a request: all its rights sit in one home region.
const (
	// homeMoves: the home moves to a region whose demand is this many times that of the present home.
	homeMoves = 2.0
	// homeCertain, in tokens per second, is what a handful of requests makes of Usual: fewer prove nothing.
	homeCertain = 0.005
)

// firstHome is limit.Split.Home by index.
func firstHome(regions []Region) int {
	split := limit.Split{}
	for i := range regions {
		split[regions[i].Name] = regions[i].Base
	}
	home := split.Home()
	return slices.IndexFunc(regions, func(r Region) bool { return r.Name == home })
}

// home picks the home region of a tiny limit; ok is false where the limit is not tiny.
func (s *scratch) home(d *Demand) (home int, ok bool) {
	if !s.homes {
		return 0, false
	}
	present, most := -1, -1
	for i := range s.regions {
		if s.current[i] == limit.Whole {
			present = i
		}
		if d.Loads[i].Known && !s.regions[i].Drained && (most < 0 || d.Loads[i].Usual > d.Loads[most].Usual) {
			most = i
		}
	}
	if !d.Rule.Tiny(len(s.regions)) {
		return 0, false
	}
	if d.Pins != nil {
		for i, pin := range d.Pins {
			if pin == limit.Whole {
				return i, true
			}
		}
	}
	if present < 0 {
		present = s.largestHolder()
	}
	// A window that is moved is in force nowhere until a whole one has passed: it only leaves a home that is drained.
	if !d.Loads[present].Known || most < 0 || d.Rule.Algorithm != limit.TokenBucket && !s.regions[present].Drained {
		return present, true
	}
	if s.regions[present].Drained || d.Loads[most].Usual > homeMoves*d.Loads[present].Usual+homeCertain {
		return most, true
	}
	return present, true
}

func (s *scratch) largestHolder() int {
	best := 0
	for i, c := range s.current {
		if c > s.current[best] {
			best = i
		}
	}
	return best
}

// gather moves everything that known regions hold to home, whole: no floors, no steps.
func (s *scratch) gather(d *Demand, home int) Reason {
	clear(s.target)
	clear(s.floor)
	rest := limit.Whole
	for i := range s.regions {
		if i != home && !d.Loads[i].Known {
			s.target[i] = s.current[i]
			rest -= s.current[i]
		}
	}
	if !d.Loads[home].Known {
		// A silent home is not given more, and nothing is taken from it.
		copy(s.target, s.current)
		return Reason{Kind: Silent}
	}
	s.target[home] = rest
	reason := Reason{Kind: Home}
	reason.describe(d, s, home, s.largestLoser())
	if s.target[home] == s.current[home] {
		reason.Kind = Steady
	}
	return reason
}

func (s *scratch) largestLoser() int {
	_, lose := s.extremes()
	return lose
}
