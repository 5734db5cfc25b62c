package modelcheck

import (
	"fmt"
	"slices"
	"time"

	"partidor.dev/partidor/shared/limit"
	"partidor.dev/partidor/shared/rights"
)

// successors calls emit with every world that can follow w and the name of the step. It stops when emit returns false.
func (c *Scope) successors(w *world, emit func(*world, string) bool) bool {
	return (c.Shares || c.tick(w, emit) && c.admissions(w, emit)) && c.moves(w, emit) && c.deliveries(w, emit) &&
		c.ruleChange(w, emit) && c.faults(w, emit) && c.lead(w, emit) && c.decide(w, emit)
}

// tick lets a second pass everywhere.
func (c *Scope) tick(w *world, emit func(*world, string) bool) bool {
	n := w.clone()
	oldest := epoch.Add(-maxLag * time.Second).UnixMicro()
	for i := range n.regions {
		n.regions[i].At = max(n.regions[i].At-1e6, oldest)
	}
	capacity, rate := c.bound(w.overlap)
	n.level = min(n.level+rate, capacity)
	return emit(n, "tick")
}

// bound is the worldwide limit that holds: during a rule change the larger of both, term by term.
func (c *Scope) bound(overlap int8) (capacity, rate int8) {
	oldC, oldR := int8(c.Units*c.Capacity), int8(c.Units*c.Rate)
	newC, newR := int8(c.Units*c.NewCapacity), int8(c.Units*c.NewRate)
	switch overlap {
	case 1:
		return max(oldC, newC), max(oldR, newR)
	case 2:
		return newC, newR
	}
	return oldC, oldR
}

// admissions lets each region admit one request.
func (c *Scope) admissions(w *world, emit func(*world, string) bool) bool {
	for i := range w.regions {
		if w.lost[i] {
			continue // no decision before the new incarnation (R8)
		}
		n := w.clone()
		if n.regions[i].Take(epoch, 1) {
			n.level--
			if !emit(n, "admit "+names[i]) {
				return false
			}
		}
	}
	return true
}

// moves gives, lends, and sends rows again.
func (c *Scope) moves(w *world, emit func(*world, string) bool) bool {
	for i := range w.regions {
		for j := range w.regions {
			if i == j || w.lost[i] {
				continue
			}
			if int(w.moves) < c.Moves && !c.give(w, i, j, emit) {
				return false
			}
			if len(c.Failing) == 0 {
				continue
			}
			n := w.clone()
			if n.sendRow(c, i, j) && len(n.net) > len(w.net) && !emit(n, fmt.Sprintf("resend %s>%s", names[i], names[j])) {
				return false
			}
		}
	}
	return true
}

func (c *Scope) give(w *world, i, j int, emit func(*world, string) bool) bool {
	for loan := 1; loan <= c.MaxLoan; loan++ {
		n := w.clone()
		if n.regions[i].Lend(epoch, names[j], int64(loan), 0) != int64(loan) {
			break
		}
		n.moves++
		n.sendRow(c, i, j)
		if !emit(n, fmt.Sprintf("lend %d %s>%s", loan, names[i], names[j])) {
			return false
		}
	}
	if c.NoGive {
		return true
	}
	n := w.clone()
	// A give may be cut to less than a unit by what is held; such shares have no place in the encoding.
	if n.regions[i].Give(epoch, names[j], c.unit(), 0) != c.unit() {
		return true
	}
	n.moves++
	n.sendRow(c, i, j)
	return emit(n, fmt.Sprintf("give %s>%s", names[i], names[j]))
}

func (w *world) sendRow(c *Scope, i, j int) bool {
	r, ok := w.regions[i].Row(names[i], names[j])
	if !ok {
		return false
	}
	w.send(message{kind: row, from: int8(i), to: int8(j), number: int8(r.Incarnation), target: int8(r.Receiver), out: c.sent(r.Sent)})
	return true
}

// ruleChange lets each region hear of the new rule, and the overlap end.
func (c *Scope) ruleChange(w *world, emit func(*world, string) bool) bool {
	if c.NewCapacity == 0 {
		return true
	}
	all := true
	for i := range w.regions {
		s := &w.regions[i]
		all = all && s.Revision.Number > 0
		for number := range int64(2) { // the older revision may be heard late
			n := w.clone()
			r := &n.regions[i]
			r.Adopt(epoch, c.numbers(i, number == 1), limit.Revision{Number: number})
			if r.Numbers == s.Numbers && r.Revision == s.Revision {
				continue
			}
			n.overlap = max(n.overlap, 1)
			if !emit(n, fmt.Sprintf("rule %d at %s", number, names[i])) {
				return false
			}
		}
	}
	if !all || w.overlap != 1 || c.Broken != OverlapEarly && c.outstanding(w) {
		return true
	}
	n := w.clone()
	n.overlap = 2
	n.level = min(n.level, int8(c.Units*c.NewCapacity))
	return emit(n, "overlap ends")
}

// outstanding tells whether a loan or a ride made before may still arrive or be held: whether a sender waits for an
// acknowledgement of one, or a receiver would accept one whose sender has forgotten it.
func (c *Scope) outstanding(w *world) bool {
	for i := range w.regions {
		s := &w.regions[i]
		for k := range s.Pairs {
			p := &s.Pairs[k]
			if p.Out.Loan > p.Acked.Loan || p.Out.Ride > p.Acked.Ride {
				return true
			}
		}
	}
	return slices.ContainsFunc(w.net, func(m message) bool {
		if m.kind != row {
			return false
		}
		s := &w.regions[m.to]
		var p rights.Pair // zeros while the receiver has yet to learn what it had
		if known := s.Pair(names[m.from]); known != nil {
			p = *known
		}
		return int64(m.number) >= p.Incarnation && int64(m.target) >= s.Incarnation &&
			(int64(m.out[1])*rights.Milli > p.In.Ride || int64(m.out[2]) > p.In.Loan)
	})
}
