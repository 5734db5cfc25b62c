package plan

import "partidor.dev/partidor/shared/limit"

// guard keeps a target from following noise (deadband) and from swinging too far at once (step). What operators and
// floors demand is not held back.
func (s *scratch) guard(d *Demand, reason Reason) Reason {
	gain, lose := s.extremes()
	reason.describe(d, s, gain, lose)
	if s.forced {
		if reason.Kind == Follow || reason.Kind == Contended {
			reason.Kind = Forced
		}
		return reason
	}
	largest := max(s.target[gain]-s.current[gain], s.current[lose]-s.target[lose])
	switch {
	case largest == 0 || largest < s.p.Deadband || d.Rule.Still(len(s.regions)):
		copy(s.target, s.current)
		reason.Kind = Steady
	case largest > s.p.Step:
		s.shorten(largest)
		reason.describe(d, s, gain, lose)
		reason.Stepped = true
	}
	return reason
}

// extremes are the regions that gain most and lose most.
func (s *scratch) extremes() (gain, lose int) {
	for i := range s.target {
		if s.target[i]-s.current[i] > s.target[gain]-s.current[gain] {
			gain = i
		}
		if s.target[i]-s.current[i] < s.target[lose]-s.current[lose] {
			lose = i
		}
	}
	return gain, lose
}

// shorten scales every change so that the largest is one step. Changes of silent regions are zero and stay so.
func (s *scratch) shorten(largest limit.Share) {
	sum := limit.Share(0)
	for i := range s.target {
		change := s.target[i] - s.current[i]
		s.target[i] = s.current[i] + change*s.p.Step/largest
		s.excess[i] = change
		sum += s.target[i]
	}
	// Integer division rounds towards no change: a few ppm are left to give, or to take back, along the largest changes.
	for sum != limit.Whole {
		best, sign := -1, limit.Share(1)
		if sum > limit.Whole {
			sign = -1
		}
		for i, change := range s.excess {
			if change*sign > 0 && (best < 0 || change*sign > s.excess[best]*sign) {
				best = i
			}
		}
		if best < 0 {
			return
		}
		s.target[best] += sign
		s.excess[best] -= sign
		sum += sign
	}
}
