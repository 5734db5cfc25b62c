package exchange

import (
	"context"
	"time"

	"partidor.dev/partidor/shared/limit"
	"partidor.dev/partidor/shared/rights"
	"partidor.dev/partidor/shared/rights/redisstore"
)

// ending is what a recovery that everybody has answered still has to write.
type ending struct {
	// known are the peers' incarnations that were answered.
	known map[string]int64
	// zeros are what peers did not list, activate the keys to be made active.
	zeros    []redisstore.Task
	activate []limit.Key
	// decide are the keys of which some peers have forgotten what lies between them and this region, open those that wait: a peer
	// has yet to say what it knows, or it is another region's to decide.
	decide map[limit.Key][]rights.Pending
	open   []limit.Key
}

// end takes what a peer did not list as nothing, decides what this region is to decide, and makes the keys active, and the region.
// A key that a peer cannot answer for yet goes on asking alone.
func (x *Exchange) end(ctx context.Context, r *recovery) {
	e := &ending{known: map[string]int64{}, decide: map[limit.Key][]rights.Pending{}}
	for peer, h := range r.peers {
		e.known[peer] = h.incarnation
	}
	for k := range r.keys {
		e.judge(x, r, k)
	}
	x.job(ctx, func(ctx context.Context) event {
		err := x.finish(ctx, r, e)
		return func(ctx context.Context, now time.Time) { x.ended(ctx, now, r, e, err) }
	})
}

// judge sorts one key by what the peers have said of it.
func (e *ending) judge(x *Exchange, r *recovery, k limit.Key) {
	var pending []rights.Pending
	var zeros []redisstore.Task
	for peer, h := range r.peers {
		p, ok := h.of(peer, k, r.number)
		switch {
		case ok && (p.Incarnation == 0 || x.o.Region > peer):
			e.open = append(e.open, k)
			return
		case ok:
			pending = append(pending, p)
		default:
			if _, listed := h.listed[k]; !listed {
				zeros = append(zeros, x.tasks([]limit.Key{k}, rights.Step{Op: rights.OpLearn, Peer: peer, Answer: rights.Answer{
					From: peer, To: x.o.Region, Incarnation: h.incarnation, Receiver: r.number, Epoch: rights.FirstEpoch,
				}})...)
			}
		}
	}
	e.zeros = append(e.zeros, zeros...)
	e.activate = append(e.activate, k)
	if len(pending) > 0 {
		e.decide[k] = pending
	}
}

func (x *Exchange) finish(ctx context.Context, r *recovery, e *ending) error {
	if r.whole { // what stays open may not have begun, since nobody has listed it
		if err := firstError(x.run(ctx, x.tasks(e.open, rights.Step{Op: rights.OpBegin, Number: r.number, Lost: true}))); err != nil {
			return err
		}
	}
	if err := x.decide(ctx, r, e); err != nil {
		return err
	}
	if err := firstError(x.run(ctx, e.zeros)); err != nil {
		return err
	}
	results := x.run(ctx, x.tasks(e.activate, rights.Step{Op: rights.OpActivate}))
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
	record, err := x.o.Store.ActivateRegion(ctx, r.number, e.known)
	if err == nil && record.Self == r.number && record.Phase != rights.Active {
		return errNotAnswered
	}
	return err
}

// decide writes what this region decides in place of the answers of peers that have forgotten (R12). Nobody sees it before the key
// is active, so that until then it may be decided anew.
func (x *Exchange) decide(ctx context.Context, r *recovery, e *ending) error {
	if len(e.decide) == 0 {
		return nil
	}
	keys := make([]limit.Key, 0, len(e.decide))
	for k := range e.decide {
		keys = append(keys, k)
	}
	// Nobody may have listed the key, so that it has not begun yet.
	if err := firstError(x.run(ctx, x.tasks(keys, rights.Step{Op: rights.OpBegin, Number: r.number, Lost: true}))); err != nil {
		return err
	}
	states, errs := x.o.Store.Read(ctx, keys)
	var learn []redisstore.Task
	wait := map[limit.Key]bool{}
	for i, k := range keys {
		if errs[i] != nil {
			return errs[i]
		}
		answers, ok := states[i].Decide(x.o.Region, e.decide[k])
		wait[k] = !ok
		for _, a := range answers {
			learn = append(learn, x.tasks([]limit.Key{k}, rights.Step{Op: rights.OpLearn, Peer: a.From, Answer: a})...)
		}
	}
	e.postpone(wait)
	for _, result := range x.run(ctx, learn) {
		if result.Err != nil {
			return result.Err
		}
		if result.Report.Verdict != rights.Applied {
			return errNotAnswered // a peer has begun yet another life
		}
	}
	return nil
}

// postpone leaves keys open that cannot be decided yet.
func (e *ending) postpone(wait map[limit.Key]bool) {
	kept := e.activate[:0]
	for _, k := range e.activate {
		if wait[k] {
			e.open = append(e.open, k)
		} else {
			kept = append(kept, k)
		}
	}
	e.activate = kept
}

func (x *Exchange) ended(ctx context.Context, now time.Time, r *recovery, e *ending, err error) {
	if err != nil { // somebody has begun anew in the meantime, or Redis is away: everybody is asked again
		x.o.Logger.WarnContext(ctx, "re-learning is not complete; the peers are asked again", "incarnation", r.number, "error", err)
		r.again(now)
		for peer := range r.peers {
			r.peers[peer] = newHearing()
		}
		return
	}
	if len(e.decide) > 0 {
		x.o.Logger.WarnContext(ctx, "what lay between this region and others was forgotten on both sides and is decided", "incarnation", r.number,
			"keys", len(e.decide), "first", anyKey(e.decide))
	}
	if done := len(r.keys) - len(e.open); r.whole || done > 0 {
		x.o.Logger.InfoContext(ctx, "rights are re-learned", "incarnation", r.number, "keys", done, "open", len(e.open))
	}
	if r.whole {
		x.region, x.self, x.phase = nil, r.number, rights.Active
		x.swept = time.Time{}
	} else {
		delete(x.keys, r.number)
	}
	if len(e.open) > 0 {
		next := newRecovery(r.number, x.peers, e.open)
		next.wait, next.asked = r.wait, r.asked
		next.again(now)
		x.keys[r.number] = next
	}
}

func anyKey(m map[limit.Key][]rights.Pending) string {
	for k := range m {
		return k.String()
	}
	return ""
}
