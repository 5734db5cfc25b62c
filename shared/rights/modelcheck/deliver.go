package modelcheck

import (
	"fmt"

	"partidor.dev/partidor/shared/limit"
	"partidor.dev/partidor/shared/rights"
)

// deliveries lets every message in the network arrive.
func (c *Scope) deliveries(w *world, emit func(*world, string) bool) bool {
	for _, m := range w.net {
		if m.kind == pending {
			continue // heard where something is decided
		}
		name := fmt.Sprintf("%s %s>%s", m.kind, names[m.from], names[m.to])
		if m.kind == row && c.Broken == AckOnReceipt {
			n := w.clone()
			n.send(message{kind: ack, from: m.to, to: m.from, number: m.target, target: m.number, in: [4]int8{m.out[0], m.out[1], m.out[2]}})
			if len(n.net) > len(w.net) && !emit(n, "early ack of "+name) {
				return false
			}
		}
		n := w.clone()
		if c.deliver(n, m) && !emit(n, name) {
			return false
		}
	}
	return true
}

func (k kind) String() string {
	return [...]string{"", "row", "ack", "void", "answer", "pending"}[k]
}

// deliver hands one message to its receiver and sends what it answers. It tells whether anything may have changed.
func (c *Scope) deliver(w *world, m message) bool {
	i, j := int(m.from), int(m.to)
	s := &w.regions[j]
	switch m.kind {
	case row:
		a, v := s.Apply(epoch, rights.Row{
			From: names[i], To: names[j], Incarnation: int64(m.number), Receiver: int64(m.target), Epoch: rights.FirstEpoch,
			Base: limit.Share(c.Base[i]) * c.unit(), Sent: c.toSent(m.out),
		})
		if v != rights.Applied {
			return false
		}
		w.send(message{kind: ack, from: m.to, to: m.from, number: int8(a.Incarnation), target: int8(a.Receiver), in: c.received(a.Received)})
		return true
	case ack:
		return s.Acknowledge(epoch, rights.Ack{
			From: names[i], To: names[j], Incarnation: int64(m.number), Receiver: int64(m.target), Epoch: rights.FirstEpoch,
			Received: c.toReceived(m.in),
		}) == rights.Applied
	case void:
		if w.lost[j] {
			return false // nobody is there to hear it
		}
		if m.from == 0 && w.leased[0] && w.granter == m.to && w.leads(m.number) && c.Broken != AgreeGranting {
			return false // its own answer keeps that region's lease alive
		}
		a, ok := s.Void(epoch, rights.Void{From: names[i], To: names[j], Incarnation: int64(m.number)})
		if ok {
			w.send(message{
				kind: answer, from: m.to, to: m.from, number: int8(a.Incarnation), target: int8(a.Receiver),
				out: c.sent(a.Out), in: c.received(a.In), acked: c.received(a.Acked),
			})
		} else if c.Decide {
			c.pend(w, m)
		}
		return true
	case answer:
		changed := s.Learn(c.answer(m)) == rights.Applied
		for k := range w.leaders {
			l := &w.leaders[k]
			if j == 0 && l.number > 0 && l.number == m.target && !l.done && l.answers[i].kind == 0 {
				l.answers[i] = m
				changed = true
			}
		}
		return changed
	}
	panic("unknown message")
}

// leads tells whether a leader has taken this number.
func (w *world) leads(number int8) bool {
	for k := range w.leaders {
		if w.leaders[k].number == number {
			return true
		}
	}
	return false
}

func (c *Scope) answer(m message) rights.Answer {
	return rights.Answer{
		From: names[m.from], To: names[m.to], Incarnation: int64(m.number), Receiver: int64(m.target), Epoch: rights.FirstEpoch,
		Base: limit.Share(c.Base[m.from]) * c.unit(), Out: c.toSent(m.out), In: c.toReceived(m.in), Acked: c.toReceived(m.acked),
	}
}

// prune forgets messages that can have no effect any more: nothing new for the incarnations they speak of or, with Trust, of
// an incarnation that is void.
func (c *Scope) prune(w *world) {
	kept := w.net[:0]
	for _, m := range w.net {
		if !c.useless(w, m) {
			kept = append(kept, m)
		}
	}
	w.net = kept
}

func (c *Scope) useless(w *world, m message) bool {
	s := &w.regions[m.to]
	p := s.Pair(names[m.from])
	if m.kind == answer {
		for k := range w.leaders {
			if m.to == 0 && w.leaders[k].number == m.target && w.leaders[k].answers[m.from].kind == 0 {
				return false
			}
		}
		return int64(m.target) < s.Incarnation || int64(m.target) == s.Incarnation && s.Phase == rights.Active
	}
	if m.kind == pending {
		return int64(m.target) < s.Incarnation || s.Phase == rights.Active || p != nil && (p.Answered || int64(m.number) < p.Incarnation)
	}
	if p == nil {
		return false
	}
	if int64(m.number) < p.Incarnation || m.kind != void && int64(m.target) < s.Incarnation {
		return c.Trust
	}
	if s.Phase != rights.Active || int64(m.number) != p.Incarnation {
		return false
	}
	out, in := c.toSent(m.out), c.toReceived(m.in)
	switch m.kind {
	case row:
		return out.Share <= p.In.Share && out.Ride <= p.In.Ride && out.Loan <= p.In.Loan
	case ack:
		return in.Share <= p.Acked.Share && in.Ride <= p.Acked.Ride && in.Loan <= p.Acked.Loan && in.Refused <= p.Acked.Refused
	}
	return false
}
