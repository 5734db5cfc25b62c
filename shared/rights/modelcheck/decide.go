package modelcheck

import (
	"fmt"
	"slices"

	"partidor.dev/partidor/shared/limit"
	"partidor.dev/partidor/shared/rights"
)

// decide lets the control plane set the amount between two regions that have both forgotten it: once for each pair of
// incarnations, when everybody else has answered both and each has voided the other's former lives (an answer from one of
// those may still be on its way), and such that the first keeps exactly its floor.
func (c *Scope) decide(w *world, emit func(*world, string) bool) bool {
	if !c.Decide {
		return true
	}
	for i := range w.regions {
		for j := i + 1; j < len(w.regions); j++ {
			a, b := &w.regions[i], &w.regions[j]
			if w.lost[i] || w.lost[j] || !c.onlyMissing(a, i, j) || !c.onlyMissing(b, j, i) {
				continue
			}
			if c.Broken != DecideEarly && (a.Pair(names[j]) == nil || a.Pair(names[j]).Incarnation != b.Incarnation ||
				b.Pair(names[i]) == nil || b.Pair(names[i]).Incarnation != a.Incarnation) {
				continue
			}
			m := message{kind: decision, from: int8(i), to: int8(j), number: int8(a.Incarnation), target: int8(b.Incarnation)}
			if slices.ContainsFunc(w.net, func(o message) bool {
				o.out = [3]int8{}
				return o == m
			}) {
				continue
			}
			m.out[0] = c.units(account(a, names[j]) - a.Floor)
			n := w.clone()
			n.send(m)
			if !emit(n, fmt.Sprintf("control plane: %s gave %s %d", names[i], names[j], m.out[0])) {
				return false
			}
		}
	}
	return true
}

// onlyMissing tells whether s re-learns and has every answer but that of region other.
func (c *Scope) onlyMissing(s *rights.State, own, other int) bool {
	if s.Phase != rights.Relearning {
		return false
	}
	for k := range c.Base {
		if k == own {
			continue
		}
		p := s.Pair(names[k])
		if (p != nil && p.Answered) == (k == other) {
			return false
		}
	}
	return true
}

// account is base + Σ in − Σ out without the pair with region other.
func account(s *rights.State, other string) limit.Share {
	share := s.Base
	for i := range s.Pairs {
		if p := &s.Pairs[i]; p.Region != other {
			share += p.In.Share - p.Out.Share
		}
	}
	return share
}

// decided hands a decision to either of the two.
func (c *Scope) decided(w *world, m message, emit func(*world, string) bool) bool {
	for _, own := range []int8{m.from, m.to} {
		n := w.clone()
		if n.regions[own].Decide(names[own], c.decision(m)) == rights.Applied && !emit(n, "decision at "+names[own]) {
			return false
		}
	}
	return true
}

func (c *Scope) decision(m message) rights.Decision {
	return rights.Decision{
		From: names[m.from], To: names[m.to], FromNumber: int64(m.number), ToNumber: int64(m.target),
		Share: limit.Share(m.out[0]) * c.unit(), Epoch: rights.FirstEpoch,
		FromBase: limit.Share(c.Base[m.from]) * c.unit(), ToBase: limit.Share(c.Base[m.to]) * c.unit(),
	}
}
