package exchange

import (
	"context"
	"maps"
	"slices"
	"time"

	"partidor.dev/partidor/shared/limit"
	"partidor.dev/partidor/shared/rights"
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
	// wait is the time from one question to the next. It grows while peers re-learn themselves and cannot answer.
	wait   time.Duration
	ending bool
}

// hearing is what one peer has answered.
type hearing struct {
	done        bool
	incarnation int64
	parts       map[int]bool
	// listed are the keys it named; of the others it remembers nothing. pending are those it re-learns itself, with what it says
	// of them; without its number it has not said what a decision needs.
	listed  map[limit.Key]struct{}
	pending map[limit.Key]rights.Pending
	// relearning: the peer re-learns all that it knew. missing are the regions that have not answered it.
	relearning bool
	missing    []string
}

func newHearing() *hearing {
	return &hearing{parts: map[int]bool{}, listed: map[limit.Key]struct{}{}, pending: map[limit.Key]rights.Pending{}}
}

// newRecovery waits for peers. Without keys it is the whole region's.
func newRecovery(number int64, peers []string, keys []limit.Key) *recovery {
	r := &recovery{number: number, whole: keys == nil, keys: map[limit.Key]struct{}{}, peers: map[string]*hearing{}, wait: askLifeEvery}
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

// missing are the regions whose memory is not at hand.
func (r *recovery) missing() (list []string) {
	for peer, h := range r.peers {
		if !h.done || h.relearning {
			list = append(list, peer)
		}
	}
	slices.Sort(list)
	return list
}

// decides tells whether this region (own) may end the recovery of all it knew although some peers have forgotten it as well: it is
// the first of those, and none of them waits for an answer that has been given here (R12).
func (r *recovery) decides(own string) bool {
	for peer, h := range r.peers {
		if !h.relearning {
			continue
		}
		if own > peer {
			return false
		}
		for _, m := range h.missing {
			if o := r.peers[m]; m != own && (o == nil || !o.relearning) {
				return false
			}
		}
	}
	return true
}

// again asks those who have not answered for good once more, later than the last time.
func (r *recovery) again(now time.Time) {
	r.ending, r.asked, r.wait = false, now, min(2*r.wait, askLifeMost)
	for peer, h := range r.peers {
		if h.relearning || !r.whole {
			r.peers[peer] = newHearing()
		}
	}
}

// forget drops what a peer has said in a former life of all, or of some keys.
func (r *recovery) forget(peer string, number int64, keys []wire.KeyName) {
	h := r.peers[peer]
	if h == nil || h.incarnation == 0 {
		return
	}
	if len(keys) == 0 {
		if h.incarnation < number {
			r.peers[peer], r.wait = newHearing(), askLifeEvery
		}
		return
	}
	for _, n := range keys {
		k := limit.Key{Tenant: n.Tenant, Route: n.Route}
		if _, ok := h.listed[k]; ok || r.whole && h.done && h.pending[k].Incarnation == 0 {
			delete(h.listed, k)
			h.pending[k] = rights.Pending{From: peer}
			r.keys[k] = struct{}{}
		}
	}
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

func (x *Exchange) recoveries() []*recovery {
	var all []*recovery
	if x.region != nil {
		all = append(all, x.region)
	}
	return slices.AppendSeq(all, maps.Values(x.keys))
}

// relearning tells whether a key is re-learned alone.
func (x *Exchange) relearning(key limit.Key) bool {
	for _, r := range x.keys {
		if _, ok := r.keys[key]; ok {
			return true
		}
	}
	return false
}

// relearn goes on with a key that somebody has begun to re-learn under the number. One of a former life of the region begins anew.
func (x *Exchange) relearn(ctx context.Context, now time.Time, key limit.Key, number int64) {
	if number < x.self {
		x.lost(ctx, now, key)
		return
	}
	if x.agent == nil || x.phase != rights.Active || x.self == 0 || len(x.keys) >= maxKeyRecoveries || x.relearning(key) {
		return
	}
	keys := []limit.Key{key}
	if r := x.keys[number]; r != nil {
		keys = slices.AppendSeq(keys, maps.Keys(r.keys))
	}
	x.keys[number] = newRecovery(number, x.peers, keys)
}

// gaps is what this region's own memory lacks: whose answers, of all that it knew (nil: it re-learns nothing as a whole) and of
// single keys.
type gaps struct {
	region []string
	keys   map[limit.Key][]string
}

// lacks tells the gaps as they are now.
func (x *Exchange) lacks() gaps {
	g := gaps{keys: map[limit.Key][]string{}}
	switch {
	case x.region != nil:
		g.region = x.region.missing()
	case x.phase != rights.Active:
		g.region = x.peers
	}
	for _, r := range x.keys {
		for k := range r.keys {
			list := r.missing()
			for peer, h := range r.peers {
				if _, ok := h.pending[k]; ok && h.done && !h.relearning {
					list = append(list, peer)
				}
			}
			slices.Sort(list)
			g.keys[k] = list
		}
	}
	return g
}

func (g gaps) equal(o gaps) bool {
	return slices.Equal(g.region, o.region) && maps.EqualFunc(g.keys, o.keys, slices.Equal)
}

// of are the regions whose memory of a key is not at hand; ok is false where the key is not being re-learned.
func (g gaps) of(key limit.Key) (list []string, ok bool) {
	if list, ok = g.keys[key]; ok {
		return list, true
	}
	return g.region, g.region != nil
}
