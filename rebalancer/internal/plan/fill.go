package plan

import (
	"math"

	"partidor.dev/partidor/shared/limit"
)

// fill divides total over claims: max-min fair, weighted, no part below its floor. Nobody gets more than its claim
// while another's is unmet, and two with unmet claims get parts in proportion to their weights. Where the claims leave
// something over, it is not divided (see addSpare). Where even the floors do not fit, each gets its part of total in
// proportion to its floor.
//
// out, claims, weights and floors are parallel; skipped entries have a negative weight. Exact up to float rounding:
// every round settles at least one entry, so it ends within len(claims) rounds per settled floor.
func (s *scratch) fill(total float64, claims, weights, floors []float64) []float64 {
	out := s.filled[:len(claims)]
	sumFloor := 0.0
	for i, w := range weights {
		out[i] = 0
		if w >= 0 {
			sumFloor += floors[i]
		}
	}
	if total <= 0 {
		return out
	}
	if sumFloor >= total {
		for i, w := range weights {
			if w >= 0 {
				out[i] = floors[i] * (total / sumFloor)
			}
		}
		return out
	}
	atFloor := s.atFloor[:len(claims)]
	for i := range atFloor {
		atFloor[i] = false
	}
	for {
		s.level(total, claims, weights, floors, atFloor, out)
		settled := true
		for i, w := range weights {
			if w >= 0 && !atFloor[i] && out[i] < floors[i] {
				// A floor lifts this part above its fair level; the others share what remains.
				atFloor[i], settled = true, false
			}
		}
		if settled {
			return out
		}
	}
}

// level pours total over the claims until it is used up or all are met, leaving the entries at their floor out.
func (s *scratch) level(total float64, claims, weights, floors []float64, atFloor []bool, out []float64) {
	open := s.open[:len(claims)]
	left, sumWeight := total, 0.0
	for i, w := range weights {
		open[i] = w >= 0 && !atFloor[i]
		switch {
		case open[i]:
			sumWeight += w
		case w >= 0:
			out[i] = floors[i]
			left -= floors[i]
		}
	}
	for {
		height := math.Inf(1)
		if sumWeight > 0 {
			height = max(0, left) / sumWeight
		}
		met := false
		for i, w := range weights {
			if open[i] && (claims[i] <= height*w || math.IsInf(height, 1)) {
				out[i], open[i], met = claims[i], false, true
				left -= claims[i]
				sumWeight -= w
			}
		}
		if met {
			continue
		}
		for i, w := range weights {
			if open[i] {
				out[i] = height * w
			}
		}
		return
	}
}

// addSpare divides what the claims left of total: byNeed of it in proportion to the parts so far, the rest by weights.
func addSpare(total, byNeed float64, parts, weights []float64) {
	sum, sumWeight := 0.0, 0.0
	for i, w := range weights {
		if w >= 0 {
			sum += parts[i]
			sumWeight += w
		}
	}
	spare := total - sum
	if spare <= 0 || sumWeight <= 0 {
		return
	}
	if sum <= 0 {
		byNeed = 0
	}
	for i, w := range weights {
		if w < 0 {
			continue
		}
		part := spare * (1 - byNeed) * (w / sumWeight)
		if byNeed > 0 {
			part += spare * byNeed * (parts[i] / sum)
		}
		parts[i] += part
	}
}

// whole turns parts into integers that add up to exactly total, none below its floor where the floors fit, by largest
// remainder. Entries with a negative weight stay 0.
func (s *scratch) whole(total limit.Share, parts, weights []float64, floors []limit.Share, out []limit.Share) {
	sum := 0.0
	for i, w := range weights {
		if w >= 0 {
			sum += parts[i]
		}
	}
	left := total
	for i, w := range weights {
		if w < 0 || sum <= 0 {
			s.rest[i] = -1
			out[i] = 0
			continue
		}
		exact := float64(total) * (parts[i] / sum)
		out[i] = min(limit.Share(exact), left)
		left -= out[i]
		s.rest[i] = exact - float64(out[i])
	}
	for left > 0 {
		best := -1
		for i, w := range weights {
			if w >= 0 && (best < 0 || s.rest[i] > s.rest[best]) {
				best = i
			}
		}
		if best < 0 {
			return
		}
		out[best]++
		s.rest[best]--
		left--
	}
	raise(weights, floors, out)
}

// raise lifts what rounding left below a floor, taking from the part that is highest above its own.
func raise(weights []float64, floors, out []limit.Share) {
	for i, w := range weights {
		for w >= 0 && out[i] < floors[i] {
			rich := -1
			for j, wj := range weights {
				if wj >= 0 && out[j] > floors[j] && (rich < 0 || out[j]-floors[j] > out[rich]-floors[rich]) {
					rich = j
				}
			}
			if rich < 0 {
				return
			}
			amount := min(floors[i]-out[i], out[rich]-floors[rich])
			out[i] += amount
			out[rich] -= amount
		}
	}
}
