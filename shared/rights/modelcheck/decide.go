package modelcheck

import (
	"slices"

	"partidor.dev/partidor/shared/limit"
	"partidor.dev/partidor/shared/rights"
)

// pend sends what a region that re-learns the key itself answers to a void.
func (c *Scope) pend(w *world, m message) {
	s := &w.regions[m.to]
	p := s.Pair(names[m.from])
	if s.Phase != rights.Relearning || p.Incarnation != int64(m.number) {
		return
	}
	w.send(message{
		kind: pending, from: m.to, to: m.from, number: int8(s.Incarnation), target: m.number,
		out: [3]int8{c.units(s.Account()), c.units(s.Floor), c.missing(s, int(m.to))},
	})
}

// missing is a set of bits: whose answers region own lacks.
func (c *Scope) missing(s *rights.State, own int) (bits int8) {
	for k := range c.Base {
		if p := s.Pair(names[k]); k != own && (p == nil || !p.Answered) {
			bits |= 1 << k
		}
	}
	return bits
}

// decide lets a region that lacks only answers of regions that have forgotten as well set the amounts between them.
func (c *Scope) decide(w *world, emit func(*world, string) bool) bool {
	for i := range w.regions {
		s := &w.regions[i]
		if w.lost[i] || s.Phase != rights.Relearning {
			continue
		}
		var heard [][]rights.Pending
		for k := range c.Base {
			if c.missing(s, i)&(1<<k) != 0 {
				heard = append(heard, c.heard(w, i, k))
			}
		}
		for _, some := range choices(heard) {
			answers, ok := s.Decide(names[i], some)
			if !ok {
				continue
			}
			n := w.clone()
			learned := true
			for _, a := range answers {
				learned = learned && n.regions[i].Learn(a) == rights.Applied
			}
			if learned && !emit(n, names[i]+" decides") {
				return false
			}
		}
	}
	return true
}

// heard are the words of region k that it re-learns itself, as region i may have heard them.
func (c *Scope) heard(w *world, i, k int) (list []rights.Pending) {
	for _, m := range w.net {
		if m.kind == pending && int(m.from) == k && int(m.to) == i {
			list = append(list, c.pending(m))
		}
	}
	if o := &w.regions[k]; c.Broken == DecideEarly && !w.lost[k] && o.Phase == rights.Relearning {
		list = append(list, rights.Pending{
			From: names[k], Incarnation: o.Incarnation, Receiver: w.regions[i].Incarnation, Account: o.Account(), Floor: o.Floor,
		})
	}
	return list
}

func (c *Scope) pending(m message) rights.Pending {
	p := rights.Pending{
		From: names[m.from], Incarnation: int64(m.number), Receiver: int64(m.target),
		Account: limit.Share(m.out[0]) * c.unit(), Floor: limit.Share(m.out[1]) * c.unit(),
	}
	for k := range c.Base {
		if m.out[2]&(1<<k) != 0 {
			p.Missing = append(p.Missing, names[k])
		}
	}
	return p
}

// choices are all ways to take one of each list.
func choices(lists [][]rights.Pending) [][]rights.Pending {
	all := [][]rights.Pending{nil}
	for _, list := range lists {
		var longer [][]rights.Pending
		for _, some := range all {
			for _, p := range list {
				longer = append(longer, append(slices.Clone(some), p))
			}
		}
		all = longer
	}
	return all
}

// recover lets every region that is away come back, the last answers arrive and what was forgotten be decided. It says what
// does not work.
func (c *Scope) recover(w *world) string {
	var down []int
	for i := range w.regions {
		if w.lost[i] || w.regions[i].Phase != rights.Active || w.superseded(i) {
			down = append(down, i)
		}
	}
	for _, i := range down {
		if !w.regions[i].Begin(epoch, int64(w.next[i]), w.lost[i]) {
			return "a new incarnation was refused"
		}
	}
	for range 2 { // once so that everybody knows of everybody's new life
		for _, i := range down {
			s := &w.regions[i]
			if s.Phase == rights.Active {
				continue
			}
			var others []rights.Pending
			for j := range w.regions {
				if j == i {
					continue
				}
				o := &w.regions[j]
				if a, ok := o.Void(epoch, rights.Void{From: names[i], To: names[j], Incarnation: s.Incarnation}); ok {
					s.Learn(a)
				} else {
					others = append(others, rights.Pending{
						From: names[j], Incarnation: o.Incarnation, Receiver: s.Incarnation, Account: o.Account(), Floor: o.Floor,
					})
				}
			}
			if len(others) == 0 || c.knownToAll(w, down) {
				answers, _ := s.Decide(names[i], others)
				for _, a := range answers {
					s.Learn(a)
				}
				s.Activate(epoch, c.peers(i))
			}
		}
	}
	for _, i := range down {
		if w.regions[i].Phase != rights.Active {
			return names[i] + " did not become active"
		}
	}
	return ""
}

// knownToAll tells whether every region has heard of the new life of those that were down.
func (c *Scope) knownToAll(w *world, down []int) bool {
	for _, i := range down {
		for j := range w.regions {
			if p := w.regions[j].Pair(names[i]); j != i && (p == nil || p.Incarnation < w.regions[i].Incarnation) {
				return false
			}
		}
	}
	return true
}
