package exchange

import (
	"hash/maphash"
	"sync"
	"time"

	"partidor.dev/partidor/shared/limit"
	"partidor.dev/partidor/shared/wire"
)

const (
	heatShards = 32
	// heatAbove: a key is hot once its bucket holds less than this part of the slice's capacity, or refuses.
	heatAbove = 0.8
	// coolAfter without being near its limit a key is no longer hot.
	coolAfter = 10 * time.Second
)

// Totals counts what this instance has admitted and refused, per key, cumulative; a *usage.Table is one.
type Totals interface {
	Totals(key limit.Key) (admitted, refused uint64, ok bool)
}

// Heat is the set of keys near their limit, as decisions show. It is bounded and safe for many goroutines; a decision about
// a key with room costs a comparison.
type Heat struct {
	totals Totals
	seed   maphash.Seed
	max    int
	shards [heatShards]heatShard
}

type heatShard struct {
	mu   sync.RWMutex
	keys map[limit.Key]*hotKey
}

type hotKey struct {
	mu     sync.Mutex
	marked bool
	cool   int // ticks since it was last marked
	share  limit.Share
	tokens float64
}

// NewHeat holds at most max keys; their counts are read from totals.
func NewHeat(totals Totals, max int) *Heat {
	h := &Heat{totals: totals, seed: maphash.MakeSeed(), max: max / heatShards}
	for i := range h.shards {
		h.shards[i].keys = map[limit.Key]*hotKey{}
	}
	return h
}

// Note looks at one decision and marks its key if it is near its limit.
func (h *Heat) Note(d *limit.Decision) {
	if d.Rule == nil || d.Source == limit.SourceHome || d.Outcome != limit.Refused && d.Outcome != limit.Allowed {
		return
	}
	if d.Outcome == limit.Allowed && d.Tokens >= heatAbove*d.Rule.SliceOf(d.Share).Capacity {
		return
	}
	s := &h.shards[maphash.Comparable(h.seed, d.Key)%heatShards]
	s.mu.RLock()
	k := s.keys[d.Key]
	s.mu.RUnlock()
	if k == nil {
		if k = s.add(d.Key, h.max); k == nil {
			return
		}
	}
	if !k.mu.TryLock() {
		return // another decision is marking it right now
	}
	k.marked, k.share, k.tokens = true, d.Share, d.Tokens
	k.mu.Unlock()
}

func (s *heatShard) add(key limit.Key, max int) *hotKey {
	s.mu.Lock()
	defer s.mu.Unlock()
	if k := s.keys[key]; k != nil || len(s.keys) >= max {
		return k
	}
	k := &hotKey{}
	s.keys[key] = k
	return k
}

// Hot gives the counters of the keys that are hot, and lets those cool that have not been marked for a while. One goroutine
// calls it, every tick.
func (h *Heat) Hot() []wire.KeyUsage {
	var hot []wire.KeyUsage
	for i := range h.shards {
		s := &h.shards[i]
		s.mu.Lock()
		for key, k := range s.keys {
			k.mu.Lock()
			if k.cool++; k.marked {
				k.marked, k.cool = false, 0
			}
			cold, share, tokens := k.cool > int(coolAfter/tick), k.share, k.tokens
			k.mu.Unlock()
			admitted, refused, ok := h.totals.Totals(key)
			if cold || !ok {
				delete(s.keys, key)
				continue
			}
			hot = append(hot, wire.KeyUsage{
				Tenant: key.Tenant, Route: key.Route, Admitted: admitted, Refused: refused, Share: share, Tokens: tokens,
			})
		}
		s.mu.Unlock()
	}
	return hot
}
