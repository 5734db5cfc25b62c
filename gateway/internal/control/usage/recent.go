package usage

import (
	"math"
	"sync"
	"sync/atomic"

	"partidor.dev/partidor/shared/limit"
	"partidor.dev/partidor/shared/wire"
)

// recent is what people want to know of a key's latest decisions: who made them, and why the last refusal was one. It starts
// anew with every report.
type recent struct {
	sources [limit.Sources]atomic.Uint32
	// refusal is made at the key's first; most keys never have one.
	refusal atomic.Pointer[refusal]
	// telling is how many reports still say the sources: a key that was decided elsewhere than in the store lately.
	telling int
}

// tellFor is for how many reports sources are said after the last decision that did not come from the store.
const tellFor = 30

type refusal struct {
	mu   sync.Mutex
	news bool
	last wire.Refusal
}

// note is called on the request path. allowed is what became of the request, which the kill switch may have spared.
func (r *recent) note(key limit.Key, cost int64, allowed bool, d *limit.Decision) {
	if int(d.Source) < len(r.sources) {
		r.sources[d.Source].Add(1)
	}
	if allowed {
		return
	}
	last := r.refusal.Load()
	if last == nil {
		r.refusal.CompareAndSwap(nil, new(refusal))
		last = r.refusal.Load()
	}
	if !last.mu.TryLock() {
		return // another one is being noted right now
	}
	defer last.mu.Unlock()
	last.news = true
	last.last = wire.Refusal{
		Outcome: d.Outcome.String(), Source: d.Source.String(), Cost: cost, WaitMillis: max(d.RetryAfter.Milliseconds(), 0),
	}
	if d.Tokens > 0 && !math.IsInf(d.Tokens, 0) {
		last.last.Tokens = d.Tokens
	}
	if d.Key.Route != key.Route {
		last.last.Limit = d.Key.Route
	}
}

// refused tells whether there is a refusal that has not been reported.
func (r *recent) refused() bool {
	last := r.refusal.Load()
	if last == nil {
		return false
	}
	last.mu.Lock()
	defer last.mu.Unlock()
	return last.news
}

// take is for the reporter alone.
func (r *recent) take() (sources []uint32, refusal *wire.Refusal) {
	var counts [limit.Sources]uint32
	n := 0
	for i := range counts {
		counts[i] = r.sources[i].Swap(0)
		if source := limit.Source(i); counts[i] > 0 {
			n = i + 1
			if source != limit.SourceRedis && source != limit.SourceMemory {
				r.telling = tellFor
			}
		}
	}
	if r.telling > 0 {
		r.telling--
		sources = append(sources, counts[:n]...)
	}
	if last := r.refusal.Load(); last != nil {
		refusal = last.take()
	}
	return sources, refusal
}

func (r *refusal) take() *wire.Refusal {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.news {
		return nil
	}
	r.news = false
	out := r.last
	return &out
}
