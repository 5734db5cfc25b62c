package admit

import (
	"math"
	"sync/atomic"
	"time"

	"partidor.dev/partidor/shared/bounded"
	"partidor.dev/partidor/shared/limit"
)

// memory is what this instance remembers of the keys in heavy use: refusals and tokens taken ahead. It is bounded; a key
// that is pushed out is merely asked for in Redis again.
type memory struct {
	keys *bounded.Map[hot]
	// life numbers the stretches in which the region's shares could be trusted: tokens of an earlier one are dropped.
	life atomic.Uint64
	// denied is how long a refusal counts, in nanoseconds; not positive for never.
	denied int64
	fetch  fetchBounds
}

// hot is what is remembered of one key.
type hot struct {
	denial atomic.Pointer[denial]
	// expecting: until then a gift from another region is on its way into the bucket, and refusals are not remembered.
	expecting atomic.Int64
	fetched
}

func newMemory(o Options) *memory {
	m := &memory{denied: int64(o.DeniedCache), fetch: fetchBounds{most: o.Prefetch.MaxTokens, horizon: int64(o.Prefetch.Horizon)}}
	if o.Prefetch.Disabled {
		m.fetch.most = 0
	}
	m.keys = bounded.New(o.MaxHot, func(h *hot) int { return int(min(h.held(), 1<<30)) + 1 })
	return m
}

// entry is the memory of key, begun where there is none. What a pushed-out key held is lost: fewer tokens are admitted, never
// more.
func (m *memory) entry(key limit.Key) *hot {
	return m.keys.GetOrAdd(key, func(_, lost *hot) {
		if lost != nil {
			lost.withdraw()
		}
	})
}

// outstanding is the tokens on hand of all keys.
func (m *memory) outstanding() (tokens int64) {
	m.keys.Range(func(_ limit.Key, h *hot) bool {
		tokens += h.held()
		return true
	})
	return tokens
}

// denial is a refusal by the truth that later requests are answered from.
type denial struct {
	decision limit.Decision
	// cost refused; a smaller one may fit and is asked for.
	cost     int64
	revision limit.Revision
	// due is when the next token is there, end when the refusal is forgotten whatever happens; at is when it was made. In
	// nanoseconds since the start.
	at, due, end int64
	// asked: somebody is asking Redis again since due. The others wait for that answer, so that one call, and not every
	// caller, goes to Redis per token.
	asked atomic.Bool
}

// creditWithin is how long a gift takes from the first news of it to the bucket, at most: one call to Redis by whoever drives
// the region's transfers.
const creditWithin = int64(30 * time.Millisecond)

// shortestDenial is the wait below which a refusal is not worth remembering: the answer would be out of date on arrival.
const shortestDenial = int64(time.Millisecond)

// heard remembers what Redis has decided of limit i at at, so far as it refuses: the request itself, or by what is left the
// next one like it.
func (m *memory) heard(c *call, i int, d *limit.Decision, at int64) {
	lim := &c.limits[i]
	switch {
	case d.Outcome == limit.Refused:
		m.deny(c, i, d, at)
		return
	case d.Outcome != limit.Allowed:
		return
	case d.Remaining < lim.Cost && d.Ahead == 0 && d.Rule.Algorithm == limit.TokenBucket && d.Rule.Shards <= 1:
		next := *d
		next.Outcome, next.RetryAfter = limit.Refused, wait(float64(lim.Cost)-d.Tokens, d.Rule.SliceOf(d.Share).Rate)
		if m.deny(c, i, &next, at) {
			return
		}
	}
	if c.hot[i] != nil {
		c.hot[i].denial.Store(nil)
	}
}

// wait is the time in which missing tokens come at rate per second, zero if that is not known.
func wait(missing, rate float64) time.Duration {
	if rate <= 0 {
		return 0
	}
	return time.Duration(min(math.Ceil(missing/rate*float64(time.Second)), math.MaxInt64/2))
}

// deny keeps a refusal of limit i, made at at, if it is worth it.
func (m *memory) deny(c *call, i int, d *limit.Decision, at int64) bool {
	wait := int64(d.RetryAfter)
	if m.denied <= 0 || wait < shortestDenial {
		return false
	}
	if c.hot[i] == nil {
		c.hot[i] = m.entry(c.limits[i].Key)
	}
	if at < c.hot[i].expecting.Load() {
		return false
	}
	c.hot[i].denial.Store(&denial{
		decision: *d, cost: c.limits[i].Cost, revision: c.limits[i].Revision,
		at: at, due: at + min(wait, math.MaxInt64-at), end: at + m.denied,
	})
	return true
}

// refused answers from a remembered refusal of one of the limits.
func (c *call) refused(at int64) (limit.Decision, bool) {
	for i := range c.limits {
		if c.hot[i] == nil {
			continue
		}
		if r := c.hot[i].denial.Load(); r != nil && r.holds(at, c.limits[i].Cost, c.limits[i].Revision) {
			return r.answer(at), true
		}
	}
	return limit.Decision{}, false
}

func (r *denial) holds(at, cost int64, now limit.Revision) bool {
	if at >= r.end || cost < r.cost || now.Newer(r.revision) {
		return false
	}
	return at < r.due || r.asked.Swap(true)
}

func (r *denial) answer(at int64) limit.Decision {
	d := r.decision
	d.Source = limit.SourceDeniedCache
	d.RetryAfter = time.Duration(max(r.due-at, shortestDenial))
	d.ResetAfter = max(0, d.ResetAfter-time.Duration(at-r.at))
	return d
}
