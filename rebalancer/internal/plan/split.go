package plan

import (
	"math"

	"partidor.dev/partidor/shared/limit"
)

// lendingRoom is the least share that a plan leaves a region, in percent of its floor. At the floor itself a region may lend
// no tokens, and what an idle one's floor brings in would overflow.
const lendingRoom = 125

// leastWeight keeps a region without a base share (added later, or drained) in the sharing of an overloaded limit.
const leastWeight = float64(limit.Whole) / 100

// scratch holds one key's working numbers; it is reused from key to key so that a plan of many keys allocates little.
type scratch struct {
	p       *Parameters
	regions []Region
	// homes: tiny limits have a home; firstHome is where the rights to tiny limits sit before they are first moved.
	homes     bool
	firstHome int

	// current is the normalised observed split, target the wanted one. floor never leaves a region; least is a little more
	// and as low as a plan goes.
	current, target, floor, least []limit.Share
	// fixed regions are not planned: silent, pinned or drained ones.
	fixed []bool
	// forced: a pin, a drain or a floor is not met, so neither deadband nor step limit apply.
	forced bool

	claims, weights, floors, filled, rest []float64
	open, atFloor                         []bool
	excess, deficit                       []limit.Share
}

func newScratch(in *Input) *scratch {
	n := len(in.Regions)
	f := func() []float64 { return make([]float64, n) }
	q := func() []limit.Share { return make([]limit.Share, n) }
	return &scratch{
		p: &in.Parameters, regions: in.Regions, homes: in.Homes, firstHome: firstHome(in.Regions),
		current: q(), target: q(), floor: q(), least: q(), fixed: make([]bool, n),
		claims: f(), weights: f(), floors: f(), filled: f(), rest: f(),
		open: make([]bool, n), atFloor: make([]bool, n), excess: q(), deficit: q(),
	}
}

// load reads a key's state: what the regions hold and what they must keep.
func (s *scratch) load(d *Demand) {
	s.observe(d)
	s.setFloors(d)
	s.forced = false
}

// setFloors: a part of the base share, and at least the largest cost where the capacity allows that for every region.
func (s *scratch) setFloors(d *Demand) {
	oneRequest := limit.Share(math.Ceil(float64(d.Rule.LargestCost()) / float64(d.Rule.Capacity) * float64(limit.Whole)))
	fits := oneRequest*limit.Share(len(s.regions)) <= limit.Whole
	for i := range s.regions {
		r := &s.regions[i]
		f := r.Floor
		if f == 0 {
			f = limit.Share(math.Ceil(float64(r.Base) * s.p.Floor))
		}
		if fits {
			f = max(f, oneRequest)
		}
		if r.Drained {
			f = 0
		}
		s.floor[i] = f
		s.least[i] = max(f, min(f*lendingRoom/100, r.Base))
	}
}

// decide sets target for the key loaded before.
func (s *scratch) decide(d *Demand) Reason {
	known := 0
	for i := range d.Loads {
		if d.Loads[i].Known {
			known++
		}
	}
	if known == 0 {
		copy(s.target, s.current)
		return Reason{Kind: Silent}
	}
	if home, ok := s.home(d); ok {
		return s.gather(d, home)
	}
	free := s.fix(d)
	reason := s.divide(d, free)
	return s.guard(d, reason)
}

// fix sets the targets of silent, pinned and drained regions and returns what is left for the others.
func (s *scratch) fix(d *Demand) limit.Share {
	free, pinned := limit.Whole, limit.Share(0)
	anyPin := false
	for i := range s.regions {
		s.fixed[i], s.target[i] = false, 0
		pin := d.Pins != nil && d.Pins[i] >= 0
		switch {
		case !d.Loads[i].Known:
			// A silent region can give nothing and may be using all it holds.
			s.fixed[i], s.target[i] = true, s.current[i]
			free -= s.current[i]
		case s.regions[i].Drained:
			s.fixed[i] = true
			s.forced = s.forced || s.current[i] > 0
		case pin:
			s.fixed[i], anyPin = true, true
			s.target[i] = d.Pins[i]
			pinned += d.Pins[i]
			s.forced = s.forced || s.current[i] != d.Pins[i]
		}
	}
	if anyPin && (pinned > free || s.allFixed()) {
		// More is pinned than silent regions leave, or nobody is left to take the rest: the pins share it in proportion.
		s.spreadPins(d, free, pinned)
		return 0
	}
	return free - pinned
}

func (s *scratch) allFixed() bool {
	for _, f := range s.fixed {
		if !f {
			return false
		}
	}
	return true
}

func (s *scratch) spreadPins(d *Demand, free, pinned limit.Share) {
	for i := range s.regions {
		s.weights[i], s.claims[i] = -1, 0
		if d.Loads[i].Known && !s.regions[i].Drained && d.Pins[i] >= 0 {
			s.weights[i], s.claims[i] = 1, float64(d.Pins[i])
			if pinned == 0 {
				s.claims[i] = 1
			}
		}
	}
	clear(s.deficit)
	s.settle(free, s.claims, s.deficit)
}

// divide shares free ppm of the limit among the regions that are not fixed.
func (s *scratch) divide(d *Demand, free limit.Share) Reason {
	rate := rateOf(d.Rule)
	total := rate * float64(free) / float64(limit.Whole)
	sum := 0.0
	open := false
	for i := range s.regions {
		s.claims[i], s.floors[i], s.weights[i] = 0, 0, -1
		if s.fixed[i] {
			continue
		}
		open = true
		s.weights[i] = max(float64(s.regions[i].Base), leastWeight)
		s.floors[i] = rate * float64(s.least[i]) / float64(limit.Whole)
		s.claims[i] = max(d.Loads[i].claim(s.p, rate), s.floors[i])
		sum += s.claims[i]
		s.forced = s.forced || s.current[i] < s.floor[i]
	}
	if !open {
		s.returnRest()
		return Reason{Kind: Pinned}
	}
	parts := s.fill(total, s.claims, s.weights, s.floors)
	kind := Contended
	if sum <= total {
		kind = Follow
		addSpare(total, s.p.SpareByNeed, parts, s.weights)
	}
	s.settle(free, parts, s.least)
	return Reason{Kind: kind}
}

// settle writes parts, as integers that add up to free and keep to floors, into the targets of the regions with a weight.
func (s *scratch) settle(free limit.Share, parts []float64, floors []limit.Share) {
	s.whole(free, parts, s.weights, floors, s.excess)
	for i, w := range s.weights {
		if w >= 0 {
			s.target[i] = s.excess[i]
		}
	}
}

// returnRest: every region is silent, drained or pinned and the sum must still be whole. What cannot be placed stays
// with whoever holds it.
func (s *scratch) returnRest() {
	sum := limit.Share(0)
	for _, t := range s.target {
		sum += t
	}
	for i := range s.target {
		if sum >= limit.Whole {
			return
		}
		if s.target[i] < s.current[i] {
			back := min(s.current[i]-s.target[i], limit.Whole-sum)
			s.target[i] += back
			sum += back
		}
	}
}
