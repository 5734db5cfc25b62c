package modelcheck

import (
	"fmt"

	"partidor.dev/partidor/shared/limit"
	"partidor.dev/partidor/shared/rights"
)

// faults lets regions lose their data or their lease, and come back.
func (c *Scope) faults(w *world, emit func(*world, string) bool) bool {
	for i := range w.regions {
		if !c.fails(i) {
			continue
		}
		if !c.copies(w, i, emit) || !c.loss(w, i, emit) || !c.fence(w, i, emit) || !c.resume(w, i, emit) || !c.comeBack(w, i, emit) {
			return false
		}
	}
	return true
}

func (c *Scope) copies(w *world, i int, emit func(*world, string) bool) bool {
	if !c.Copies {
		return true
	}
	if w.copied < 0 {
		n := w.clone()
		n.copied = whole(w.regions[i].Tokens)
		return emit(n, "copy of "+names[i])
	}
	if c.Broken != OldCopy || w.copied == 0 {
		return true
	}
	n := w.clone()
	n.regions[i].Tokens = float64(w.copied)
	n.copied = 0
	return emit(n, names[i]+" goes on with the copy")
}

func (c *Scope) loss(w *world, i int, emit func(*world, string) bool) bool {
	s := &w.regions[i]
	if int(w.losses) >= c.Losses || w.lost[i] {
		return true
	}
	n := w.clone()
	n.losses++
	n.lost[i] = true
	blank := rights.State{
		Numbers: s.Numbers, Revision: s.Revision, Moved: true, Phase: rights.Relearning,
		Base: s.Base, Floor: s.Floor, Share: s.Floor,
	}
	blank.At = epoch.UnixMicro()
	if w.copied > 0 {
		blank.Tokens = float64(w.copied)
	}
	n.regions[i] = blank
	return emit(n, "LOSS "+names[i])
}

func (c *Scope) fence(w *world, i int, emit func(*world, string) bool) bool {
	if int(w.fences) >= c.Fences || !w.leased[i] || c.Leaders > 0 && i != 0 {
		return true
	}
	n := w.clone()
	n.fences++
	n.leased[i], n.granter = false, -1
	n.regions[i].Fence(epoch)
	return emit(n, "fence "+names[i])
}

// resume lets a fenced region 0 go on under the same incarnation once one voter answers that does not know it to be void. In
// the product a majority must answer; one voter of it is enough, because minting takes the agreement of all.
func (c *Scope) resume(w *world, i int, emit func(*world, string) bool) bool {
	s := &w.regions[i]
	if i != 0 || int(w.resumes) >= c.Resumes || w.lost[i] || s.Phase != rights.Fenced {
		return true
	}
	for v := int8(1); v <= control; v++ {
		known := int64(0)
		switch {
		case v == control:
			for k := range w.leaders {
				known = max(known, int64(w.leaders[k].number))
			}
		case int(v) >= len(w.regions) || w.lost[v] || w.regions[v].Phase != rights.Active:
			continue // a region that re-learns may have forgotten that it agreed
		default:
			known = w.regions[v].Pair(names[i]).Incarnation
		}
		if known > s.Incarnation && c.Broken != ResumeVoid {
			continue
		}
		n := w.clone()
		n.resumes++
		n.leased[i], n.granter = true, v
		r := &n.regions[i]
		r.Settle(epoch)
		r.Phase, r.Share = rights.Active, r.Base
		for k := range r.Pairs {
			r.Share += r.Pairs[k].In.Share - r.Pairs[k].Out.Share
		}
		if !emit(n, fmt.Sprintf("%s resumes by voter %d", names[i], v)) {
			return false
		}
	}
	return true
}

// superseded tells whether some region knows of a later life of region i, which then has to begin anew.
func (w *world) superseded(i int) bool {
	s := &w.regions[i]
	for j := range w.regions {
		if j == i {
			continue
		}
		if p := w.regions[j].Pair(names[i]); p != nil && p.Incarnation > s.Incarnation {
			return true
		}
	}
	return false
}

// comeBack begins a new incarnation, and ends re-learning once everybody has answered.
func (c *Scope) comeBack(w *world, i int, emit func(*world, string) bool) bool {
	s := &w.regions[i]
	if w.lost[i] || s.Phase == rights.Fenced || s.Phase == rights.Relearning && !w.leased[i] || w.superseded(i) {
		n := w.clone()
		number := n.take(c, i)
		if !n.regions[i].Begin(epoch, int64(number), w.lost[i]) {
			return true
		}
		n.lost[i], n.leased[i], n.granter = false, true, -1
		n.sendVoids(i, number)
		if !emit(n, fmt.Sprintf("%s begins as %d", names[i], number)) {
			return false
		}
	}
	if s.Phase == rights.Relearning && (w.leased[i] || c.Broken == NoLease) {
		n := w.clone()
		if n.regions[i].Activate(epoch, c.peers(i)) {
			return emit(n, names[i]+" active")
		}
	}
	return true
}

// take draws the next incarnation from region i's durable counter.
func (w *world) take(c *Scope, i int) int8 {
	number := w.next[i]
	if c.Broken == ReusedNumber {
		return 1
	}
	w.next[i]++
	return number
}

func (w *world) sendVoids(i int, number int8) {
	for j := range w.regions {
		if j != i {
			w.send(message{kind: void, from: int8(i), to: int8(j), number: number})
		}
	}
}

func (c *Scope) peers(i int) []string {
	var peers []string
	for j := range c.Base {
		if j != i {
			peers = append(peers, names[j])
		}
	}
	return peers
}

// lead lets leaders mint anew what region 0 holds above its floor, in its name, once its lease is over.
func (c *Scope) lead(w *world, emit func(*world, string) bool) bool {
	for k := range c.Leaders {
		l := &w.leaders[k]
		if l.number == 0 {
			if w.leased[0] && (w.granter < 0 || w.granter == control) && c.Broken != MintEarly {
				continue // the leader's own answer, or everybody's, keeps the lease alive
			}
			n := w.clone()
			n.leaders[k].number = n.next[0]
			if c.Broken != SharedNumber || k != 0 {
				n.next[0]++
			}
			n.sendVoids(0, n.leaders[k].number)
			if !emit(n, fmt.Sprintf("leader %d takes %d", k, n.leaders[k].number)) {
				return false
			}
			continue
		}
		if !c.mint(w, k, emit) {
			return false
		}
	}
	return true
}

func (c *Scope) mint(w *world, k int, emit func(*world, string) bool) bool {
	l := &w.leaders[k]
	if l.done {
		return true
	}
	var answers []rights.Answer
	for j := 1; j < len(w.regions); j++ {
		if l.answers[j].kind != 0 {
			answers = append(answers, c.answer(l.answers[j]))
		}
	}
	missing := len(w.regions) - 1 - len(answers)
	if len(answers) == 0 || missing > 0 && c.Broken != MintMissing {
		return true
	}
	base := limit.Share(c.Base[0]) * c.unit()
	excess := rights.Excess(base, c.floor(0), answers)
	if excess == 0 {
		return true
	}
	for _, a := range answers {
		n := w.clone()
		n.leaders[k].done = true
		r := rights.MintRow(a, base, excess)
		n.send(message{kind: row, from: 0, to: int8(indexOf(r.To)), number: int8(r.Incarnation), target: int8(r.Receiver), out: c.sent(r.Sent)})
		if !emit(n, fmt.Sprintf("leader %d mints %d to %s", k, c.units(excess), r.To)) {
			return false
		}
	}
	return true
}
