package plan

import "partidor.dev/partidor/shared/limit"

// observe sets current: the shares the regions reported, or were last known to hold, made to add up to limit.Whole.
// They do not add up by themselves while share travels and while reports are of different moments.
func (s *scratch) observe(d *Demand) {
	sum := limit.Share(0)
	for i := range s.regions {
		share := d.Loads[i].Share
		if share <= 0 || share > limit.Whole {
			share = s.last(d, i)
		}
		s.current[i] = share
		sum += share
	}
	// What is missing is on its way to where the last plan wanted it; what is too much, a receiver already counts and the
	// giver's older report still does.
	for i := range s.current {
		want := s.last(d, i)
		switch {
		case sum < limit.Whole && s.current[i] < want:
			add := min(want-s.current[i], limit.Whole-sum)
			s.current[i] += add
			sum += add
		case sum > limit.Whole && s.current[i] > want:
			cut := min(s.current[i]-want, sum-limit.Whole)
			s.current[i] -= cut
			sum -= cut
		}
	}
	if sum == limit.Whole {
		return
	}
	// Only possible where the last plan, or the base split, does not add up itself.
	for i, c := range s.current {
		s.weights[i], s.claims[i] = 1, float64(c)
		if sum == 0 {
			s.claims[i] = 1
		}
	}
	clear(s.deficit)
	s.whole(limit.Whole, s.claims, s.weights, s.deficit, s.current)
}

// last is the share that the ledger last wanted for a region: its target, or its base share where the key never moved
// (all or nothing where the limit is tiny).
func (s *scratch) last(d *Demand, region int) limit.Share {
	if d.Last != nil {
		return d.Last[region]
	}
	if s.homes && d.Rule.Tiny(len(s.regions)) {
		if region == s.firstHome {
			return limit.Whole
		}
		return 0
	}
	return s.regions[region].Base
}
