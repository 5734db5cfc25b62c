package exchange

import (
	"context"
	"time"

	"partidor.dev/partidor/shared/limit"
	"partidor.dev/partidor/shared/rights"
	"partidor.dev/partidor/shared/rights/redisstore"
	"partidor.dev/partidor/shared/wire"
)

// maxKeyRecoveries bounds the single keys that are re-learned at one time.
const maxKeyRecoveries = 256

// recovery is one incarnation that asks its peers what they remember: of the whole region, or of some keys.
type recovery struct {
	number int64
	whole  bool
	keys   map[limit.Key]struct{}
	peers  map[string]*hearing
	asked  time.Time
	ending bool
}

// hearing is what one peer has answered.
type hearing struct {
	done        bool
	incarnation int64
	parts       map[int]bool
	// listed are the keys it named; of the others it remembers nothing. pending are those it cannot answer for yet.
	listed, pending map[limit.Key]struct{}
}

func newHearing() *hearing {
	return &hearing{parts: map[int]bool{}, listed: map[limit.Key]struct{}{}, pending: map[limit.Key]struct{}{}}
}

// newRecovery waits for peers. Without keys it is the whole region's.
func newRecovery(number int64, peers []string, keys []limit.Key) *recovery {
	r := &recovery{number: number, whole: keys == nil, keys: map[limit.Key]struct{}{}, peers: map[string]*hearing{}}
	for _, k := range keys {
		r.keys[k] = struct{}{}
	}
	for _, p := range peers {
		r.peers[p] = newHearing()
	}
	return r
}

func (r *recovery) complete() bool {
	for _, h := range r.peers {
		if !h.done {
			return false
		}
	}
	return true
}

// names are the keys asked for; none means all.
func (r *recovery) names() []wire.KeyName {
	if r.whole {
		return nil
	}
	names := make([]wire.KeyName, 0, len(r.keys))
	for k := range r.keys {
		names = append(names, wire.KeyName{Tenant: k.Tenant, Route: k.Route})
	}
	return names
}

func (x *Exchange) recoveryOf(number int64) *recovery {
	if x.region != nil && x.region.number == number {
		return x.region
	}
	return x.keys[number]
}

// hearAnswer takes in one part of what a peer remembers.
func (x *Exchange) hearAnswer(ctx context.Context, now time.Time, m *wire.Answer) {
	r := x.recoveryOf(m.ReceiverIncarnation)
	if r == nil && m.To == x.o.Region && x.phase == rights.Active {
		x.superseded(ctx, now, m.ReceiverIncarnation, m.Known)
	}
	if m.To != x.o.Region || r == nil || r.ending || r.peers[m.Region] == nil || r.peers[m.Region].done {
		return
	}
	h := r.peers[m.Region]
	if m.Known > r.number { // a number of ours that we have forgotten ourselves
		x.last = max(x.last, m.Known)
		if r.whole {
			x.begin(ctx, now, m.Known, r.number, x.runSeen)
		} else {
			delete(x.keys, r.number)
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
	if h.incarnation != 0 && h.incarnation != m.Incarnation { // it has begun anew itself in the meantime
		*h = *newHearing()
	}
	h.incarnation = m.Incarnation
	x.job(ctx, func(ctx context.Context) event {
		ok := x.learn(ctx, r.number, m)
		return func(context.Context, time.Time) {
			if ok && !r.ending && h.incarnation == m.Incarnation {
				h.take(r, m)
			}
		}
	})
}

// take notes a part as learned.
func (h *hearing) take(r *recovery, m *wire.Answer) {
	for i := range m.Keys {
		k := limit.Key{Tenant: m.Keys[i].Tenant, Route: m.Keys[i].Route}
		r.keys[k] = struct{}{}
		if m.Keys[i].Pending {
			h.pending[k] = struct{}{}
		} else {
			h.listed[k] = struct{}{}
		}
	}
	h.parts[m.Part] = true
	h.done = len(h.parts) >= max(1, m.Parts)
}

// learn writes what a peer remembers beside the keys, which begin with that if they have not yet. It tells whether all of it is
// written.
func (x *Exchange) learn(ctx context.Context, number int64, m *wire.Answer) bool {
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
			return false
		}
	}
	for _, r := range x.run(ctx, learn) {
		if r.Err != nil || r.Report.Verdict != rights.Applied {
			return false
		}
	}
	return true
}

// end takes what a peer did not list as nothing, and makes the keys active, and the region. A key that a peer cannot answer for
// yet goes on asking alone.
func (x *Exchange) end(ctx context.Context, r *recovery) {
	var zeros, activate []redisstore.Task
	var open []limit.Key
	for k := range r.keys {
		pending := false
		for peer, h := range r.peers {
			if _, ok := h.pending[k]; ok {
				pending = true
			} else if _, ok := h.listed[k]; !ok {
				zeros = append(zeros, x.tasks([]limit.Key{k}, rights.Step{Op: rights.OpLearn, Peer: peer, Answer: rights.Answer{
					From: peer, To: x.o.Region, Incarnation: h.incarnation, Receiver: r.number, Epoch: rights.FirstEpoch,
				}})...)
			}
		}
		if pending {
			open = append(open, k)
			continue
		}
		activate = append(activate, x.tasks([]limit.Key{k}, rights.Step{Op: rights.OpActivate})...)
	}
	known := map[string]int64{}
	for peer, h := range r.peers {
		known[peer] = h.incarnation
	}
	x.job(ctx, func(ctx context.Context) event {
		err := x.finish(ctx, r, known, zeros, activate)
		return func(ctx context.Context, now time.Time) { x.ended(ctx, now, r, open, err) }
	})
}

func (x *Exchange) finish(ctx context.Context, r *recovery, known map[string]int64, zeros, activate []redisstore.Task) error {
	for peer, number := range known {
		if !r.whole {
			break
		}
		if _, err := x.o.Store.VoidPeer(ctx, peer, number); err != nil {
			return err
		}
	}
	if err := firstError(x.run(ctx, zeros)); err != nil {
		return err
	}
	results := x.run(ctx, activate)
	if err := firstError(results); err != nil {
		return err
	}
	for i := range results {
		if v := results[i].Report.Verdict; v != rights.Applied && results[i].Report.Phase != rights.Active {
			return errNotAnswered
		}
	}
	if !r.whole {
		return nil
	}
	_, err := x.o.Store.ActivateRegion(ctx, r.number)
	return err
}

func (x *Exchange) ended(ctx context.Context, now time.Time, r *recovery, open []limit.Key, err error) {
	if err != nil { // somebody has begun anew in the meantime, or Redis is away: everybody is asked again
		x.o.Logger.WarnContext(ctx, "re-learning is not complete; the peers are asked again", "incarnation", r.number, "error", err)
		r.ending, r.asked = false, now
		for peer := range r.peers {
			r.peers[peer] = newHearing()
		}
		return
	}
	x.o.Logger.InfoContext(ctx, "rights are re-learned", "incarnation", r.number, "keys", len(r.keys)-len(open), "open", len(open))
	if r.whole {
		x.region, x.self, x.phase = nil, r.number, rights.Active
		x.swept = time.Time{}
	} else {
		delete(x.keys, r.number)
	}
	if len(open) > 0 {
		x.keys[r.number] = newRecovery(r.number, x.peers, open)
	}
}

func sentOf(c [3]int64) rights.Sent {
	return rights.Sent{Share: limit.Share(c[0]), Ride: c[1], Loan: c[2]}
}

func receivedOf(c [4]int64) rights.Received {
	return rights.Received{Sent: sentOf([3]int64{c[0], c[1], c[2]}), Refused: c[3]}
}
