package exchange

import (
	"context"
	"slices"
	"time"

	"partidor.dev/partidor/shared/limit"
	"partidor.dev/partidor/shared/rights"
	"partidor.dev/partidor/shared/rights/redisstore"
	"partidor.dev/partidor/shared/wire"
)

// hearAnswer takes in one part of what a peer remembers.
func (x *Exchange) hearAnswer(ctx context.Context, now time.Time, m *wire.Answer) {
	number := m.ReceiverIncarnation
	if m.Relearning > 0 {
		number = m.Relearning
	}
	r := x.recoveryOf(number)
	if r == nil && m.To == x.o.Region && x.phase == rights.Active {
		x.superseded(ctx, now, number, m.Known)
	}
	if m.To != x.o.Region || r == nil || r.ending || r.peers[m.Region] == nil || r.peers[m.Region].done {
		return
	}
	h := r.peers[m.Region]
	if m.Known > r.number { // a number of ours that we have forgotten ourselves
		x.last = max(x.last, m.Known)
		if r.whole {
			x.begin(ctx, now, m.Known, r.number, x.runSeen)
			return
		}
		delete(x.keys, r.number)
		for k := range r.keys {
			x.lost(ctx, now, k) // under a number above that one
		}
		return
	}
	if m.Blank {
		// Both know of nothing that ever moved: two regions in their first life.
		if r.whole && x.movedKeys() == 0 {
			h.done, h.incarnation = true, m.Incarnation
		}
		return
	}
	if h.incarnation != 0 && (h.incarnation != m.Incarnation || h.relearning != (m.Relearning > 0)) {
		*h = *newHearing() // it has begun anew itself in the meantime, or remembers by now
	}
	h.incarnation, h.relearning, h.missing = m.Incarnation, m.Relearning > 0, m.Missing
	x.job(ctx, func(ctx context.Context) event {
		ok, active := x.learn(ctx, r.number, m)
		return func(context.Context, time.Time) {
			for _, k := range active { // another instance has finished it
				delete(r.keys, k)
			}
			if !r.whole && len(r.keys) == 0 {
				delete(x.keys, r.number)
				return
			}
			if ok && !r.ending && r.peers[m.Region] == h && h.incarnation == m.Incarnation {
				h.take(r, m)
			}
		}
	})
}

// take notes a part as learned.
func (h *hearing) take(r *recovery, m *wire.Answer) {
	for i := range m.Keys {
		a := &m.Keys[i]
		k := limit.Key{Tenant: a.Tenant, Route: a.Route}
		if _, ok := r.keys[k]; !ok && !r.whole {
			continue
		}
		r.keys[k] = struct{}{}
		if !a.Pending {
			h.listed[k] = struct{}{}
			continue
		}
		p := rights.Pending{From: m.Region}
		if f := a.Forgot; f != nil {
			p.Incarnation, p.Receiver = a.Incarnation, r.number
			p.Account, p.Floor, p.Missing = limit.Share(f.Account), f.Floor, f.Missing
		}
		h.pending[k] = p
	}
	h.parts[m.Part] = true
	h.done = len(h.parts) >= max(1, m.Parts)
}

// of is what the peer cannot say about a key because it re-learns it itself; ok is false where it can.
func (h *hearing) of(peer string, k limit.Key, number int64) (p rights.Pending, ok bool) {
	if p, ok = h.pending[k]; ok {
		return p, true
	}
	if _, listed := h.listed[k]; listed || !h.relearning {
		return p, false
	}
	// It has no dealings with anybody else, so it has its base share, and what it could give is not known.
	return rights.Pending{From: peer, Incarnation: h.incarnation, Receiver: number, Missing: h.missing}, true
}

// learn writes what a peer remembers beside the keys, which begin with that if they have not yet. It tells whether all of it is
// written, and which keys are active already.
func (x *Exchange) learn(ctx context.Context, number int64, m *wire.Answer) (ok bool, active []limit.Key) {
	var begin, learn []redisstore.Task
	for i := range m.Keys {
		k := &m.Keys[i]
		if k.Pending {
			continue
		}
		keys := []limit.Key{{Tenant: k.Tenant, Route: k.Route}}
		begin = append(begin, x.tasks(keys, rights.Step{Op: rights.OpBegin, Number: number, Lost: true})...)
		learn = append(learn, x.tasks(keys, rights.Step{Op: rights.OpLearn, Peer: m.Region, Answer: rights.Answer{
			From: m.Region, To: m.To, Incarnation: k.Incarnation, Receiver: number, Epoch: k.Epoch, Base: k.Base,
			Out: sentOf(k.Out), In: receivedOf(k.In), Acked: receivedOf(k.Acked),
		}})...)
	}
	for _, r := range x.run(ctx, begin) { // outdated: it has begun already
		if r.Err != nil || r.Report.Verdict != rights.Applied && r.Report.Verdict != rights.Outdated {
			return false, nil
		}
	}
	ok = true
	for i, r := range x.run(ctx, learn) {
		switch {
		case r.Err == nil && r.Report.Verdict == rights.Applied:
		case r.Err == nil && r.Report.Verdict == rights.Inactive && r.Report.Phase == rights.Active:
			active = append(active, learn[i].Step.Key)
		default:
			ok = false
		}
	}
	return ok, slices.Clip(active)
}

func sentOf(c [3]int64) rights.Sent {
	return rights.Sent{Share: limit.Share(c[0]), Ride: c[1], Loan: c[2]}
}

func receivedOf(c [4]int64) rights.Received {
	return rights.Received{Sent: sentOf([3]int64{c[0], c[1], c[2]}), Refused: c[3]}
}
