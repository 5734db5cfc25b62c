package admit

import (
	"context"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"partidor.dev/partidor/shared/bucket"
	"partidor.dev/partidor/shared/fallback"
	"partidor.dev/partidor/shared/limit"
)

// heldPart of a slice's capacity is the most that all instances together hold ahead, and so the most that prefetch adds to
// a burst.
const heldPart = 0.05

// fetchBounds are the bounds of one instance for one key.
type fetchBounds struct {
	// most tokens at once; 0 switches prefetch off.
	most int64
	// horizon of the instance's own rate that one fetch covers, in nanoseconds.
	horizon int64
}

// fetched is what an instance holds ahead of one key. Spending is one compare-and-swap; everything else happens once per
// call to Redis, under the lock.
type fetched struct {
	batch atomic.Pointer[batch]

	mu     sync.Mutex
	flight *flight // the fetch under way that this key leads, nil without one
	coming int64   // tokens asked for by fetches under way
	used   int64   // tokens used since then
	since  int64   // when rate was last brought up to date
	rate   float64 // tokens per second that this instance uses, smoothed
	level  int64   // whole tokens last seen in Redis
	room   float64 // capacity of the slice when last seen
}

// flight is a fetch under way, for others to wait for.
type flight struct {
	back   chan struct{} // closed when it has come back
	failed bool          // without an answer; to be read after that
}

// batch is tokens taken together.
type batch struct {
	left     atomic.Int64
	decision limit.Decision // that brought them
	revision limit.Revision // asked under
	rule     *limit.Rule    // asked by
	life     uint64
	at       int64
	size     int64 // tokens that were or will be used, under the lock
}

// trusted tells whether a batch may still be spent on lim.
func (b *batch) trusted(life uint64, lim *bucket.Limit) bool { return b.life == life && b.under(lim) }

// under tells whether lim's rule is still the one that the batch was taken under. A rule that ends by itself hands over to
// another without a newer revision.
func (b *batch) under(lim *bucket.Limit) bool {
	return !lim.Revision.Newer(b.revision) && (lim.Rule == b.rule || *lim.Rule == *b.rule)
}

// take spends cost from the batch.
func (b *batch) take(cost int64) bool {
	for {
		left := b.left.Load()
		if left < cost {
			return false
		}
		if b.left.CompareAndSwap(left, left-cost) {
			return true
		}
	}
}

// held is the tokens on hand.
func (f *fetched) held() int64 {
	if b := f.batch.Load(); b != nil {
		return b.left.Load()
	}
	return 0
}

// withdraw takes what is left of the batch on hand away, unused, and tells how much that was.
func (f *fetched) withdraw() int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	b := f.batch.Load()
	if b == nil {
		return 0
	}
	rest := b.left.Swap(0)
	b.size -= rest
	return rest
}

// spendAhead decides a request from tokens on hand: all limits or none.
func (a *Admitter) spendAhead(c *call) (limit.Decision, bool) {
	var from [mostLimits]*batch
	var strictest *batch
	least := int64(math.MaxInt64)
	life := a.memory.life.Load()
	for i := range c.limits {
		lim := &c.limits[i]
		if c.hot[i] != nil {
			from[i] = c.hot[i].batch.Load()
		}
		if from[i] == nil || !from[i].trusted(life, lim) || !from[i].take(lim.Cost) {
			for j := range i {
				from[j].left.Add(c.limits[j].Cost)
			}
			return limit.Decision{}, false
		}
		if r := from[i].decision.Remaining + from[i].left.Load(); r < least {
			strictest, least = from[i], r
		}
	}
	d := strictest.decision
	d.Source, d.Remaining = limit.SourcePrefetch, least
	return d, true
}

// prefetched decides a request whose limits all allow prefetch: from tokens on hand, else by the fetch under way, else by
// one of its own. A key that is hardly used is asked for one by one.
func (a *Admitter) prefetched(ctx context.Context, now time.Time, c *call) limit.Decision {
	if a.opts.Fenced() {
		a.Distrust()
		return a.ask(ctx, now, c)
	}
	if d, ok := a.spendAhead(c); ok {
		return d
	}
	for i := range c.limits {
		if c.hot[i] == nil {
			c.hot[i] = a.memory.entry(c.limits[i].Key)
		}
	}
	at, instances := a.since(now), int64(max(1, a.opts.Instances()))
	want := int64(math.MaxInt64)
	for i := range c.limits {
		want = min(want, c.hot[i].want(at, a.memory.fetch, instances))
	}
	if want < 1 || a.nodes.of(&c.limits[0]).State() != fallback.Closed {
		return a.ask(ctx, now, c)
	}
	lead := &c.hot[0].fetched
	fetch, mine := lead.board()
	if !mine {
		return a.share(ctx, now, c, fetch)
	}
	for i := range c.limits { // a tenant's limit may be in several fetches, of different routes
		want = c.hot[i].reserve(want, instances)
		c.limits[i].Ahead = want
	}
	for i := range c.limits {
		c.hot[i].release(c.limits[i].Ahead - want)
		c.limits[i].Ahead = want
	}
	d := a.ask(ctx, now, c)
	for i := range c.limits {
		c.hot[i].release(want)
	}
	lead.land(fetch, c.failed)
	return d
}

// share waits for a fetch that another request has begun, which comes back within that one's deadline, and decides by what
// it brought.
func (a *Admitter) share(ctx context.Context, now time.Time, c *call, fetch *flight) limit.Decision {
	<-fetch.back
	if fetch.failed {
		return a.fallback(now, c)
	}
	if d, ok := a.spendAhead(c); ok {
		return d
	}
	if d, ok := c.refused(a.since(now)); ok {
		return d
	}
	return a.ask(ctx, now, c)
}

// want is how many tokens it is worth taking ahead of a key at at.
func (f *fetched) want(at int64, bounds fetchBounds, instances int64) int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	if passed := at - f.since; passed >= bounds.horizon/4 {
		f.rate = (f.rate + float64(f.used)/time.Duration(passed).Seconds()) / 2
		f.since, f.used = at, 0
	}
	own := int64(f.rate * time.Duration(bounds.horizon).Seconds())
	return min(own, bounds.most, f.spare(instances), f.level/instances)
}

// spare is how many more tokens this instance may hold: its part of the bound, less what it has and what is coming. The lock
// is held.
func (f *fetched) spare(instances int64) int64 {
	return int64(f.room*heldPart)/instances - f.held() - f.coming
}

// reserve claims up to want of what may still be held, for a fetch.
func (f *fetched) reserve(want, instances int64) int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	want = max(0, min(want, f.spare(instances)))
	f.coming += want
	return want
}

func (f *fetched) release(n int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.coming -= n
}

// landed books what a call to Redis brought for limit i.
func (f *fetched) landed(c *call, i int, d *limit.Decision, at int64, life uint64) {
	lim := &c.limits[i]
	f.mu.Lock()
	defer f.mu.Unlock()
	f.level = d.Remaining // of the strictest limit: this one has at least as much
	if d.Key == lim.Key {
		f.room = d.Rule.SliceOf(d.Share).Capacity
	} else if f.room == 0 {
		share := lim.Base
		if lim.Moved {
			share = min(share, lim.Floor)
		}
		f.room = lim.Rule.SliceOf(share).Capacity
	}
	if d.Outcome == limit.Allowed {
		f.used += lim.Cost
	}
	if d.Ahead <= 0 {
		return
	}
	b := &batch{decision: *d, revision: lim.Revision, rule: lim.Rule, life: life, at: at, size: d.Ahead}
	b.left.Store(d.Ahead)
	if old := f.batch.Load(); old != nil {
		rest := old.left.Swap(0)
		f.used += old.size - rest
		if old.life == life {
			b.left.Add(rest)
			b.size += rest
		}
	}
	f.batch.Store(b)
}

// board joins the fetch under way, or begins one.
func (f *fetched) board() (fetch *flight, mine bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.flight != nil {
		return f.flight, false
	}
	f.flight = &flight{back: make(chan struct{})}
	return f.flight, true
}

func (f *fetched) land(fetch *flight, failed bool) {
	fetch.failed = failed
	f.mu.Lock()
	f.flight = nil
	f.mu.Unlock()
	close(fetch.back)
}
