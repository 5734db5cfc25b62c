package fallback

import (
	"math"
	"sync"
	"sync/atomic"
	"time"

	"partidor.dev/partidor/shared/bounded"
	"partidor.dev/partidor/shared/bucket"
	"partidor.dev/partidor/shared/limit"
)

// DefaultMaxBuckets bounds a Local that is told nothing else: about 60 MB when full.
const DefaultMaxBuckets = 200_000

// Terms is what one decision may use while Redis is away.
type Terms struct {
	// Instances that share the region's slice, at least 1.
	Instances int
	// Floor is the region's floor share: what counts for keys that have moved and whose share was never seen.
	Floor limit.Share
	// FloorOnly: the floor counts for every key, because the region is fenced or the operator chose a strict fallback.
	FloorOnly bool
}

// Local limits one instance to its part of the region's slices. It is safe for many goroutines, its memory is bounded,
// and it starts from what was last seen in Redis.
type Local struct {
	start   time.Time
	buckets *bounded.Map[local]
	// clock is about the latest now, in nanoseconds since start: enough to tell which buckets have filled up meanwhile.
	clock atomic.Int64
	// owing counts the keys that may owe something, so that nobody looks for debts where there are none.
	owing atomic.Int64
}

// NewLocal remembers at most maxBuckets keys (DefaultMaxBuckets if that is not positive). Of now only later differences
// count.
func NewLocal(now time.Time, maxBuckets int) *Local {
	if maxBuckets <= 0 {
		maxBuckets = DefaultMaxBuckets
	}
	l := &Local{start: now}
	l.buckets = bounded.New(maxBuckets, l.worth)
	return l
}

// local is what an instance knows of one key.
type local struct {
	mu sync.Mutex
	// part is the level of this instance's part of the slice, whole that of the slice as far as this instance knows; both
	// in tokens, at the time at, in nanoseconds since the limiter's start.
	part, whole float64
	at          int64
	// share in force at the last decision of Redis; seen tells that there was one.
	share limit.Share
	seen  bool
	// owed is what was admitted here and not yet taken from Redis, in whole tokens, under last.
	owed int64
	last bucket.Limit
	// gone: the key was forgotten; whoever still holds this must look it up anew.
	gone bool
	// fullAt is when part will be full again and nothing is lost by forgetting it; never while something is owed.
	fullAt atomic.Int64
}

// worth tells what forgetting a key would lose: nothing where it is full again, for it would start full; its level; or
// its debt.
func (l *Local) worth(s *local) int {
	switch at := s.fullAt.Load(); {
	case at == math.MaxInt64:
		return 2
	case at > l.clock.Load():
		return 1
	}
	return 0
}

// slice is what this instance may use of a key: never less than one token of burst, as long as there are any rights.
type slice struct {
	part, whole         float64 // capacities in tokens
	partRate, wholeRate float64 // tokens per second
	share               limit.Share
}

func sliceOf(rule *limit.Rule, share limit.Share, instances int) slice {
	full := rule.SliceOf(share)
	if rule.Algorithm != limit.TokenBucket {
		// A window's quota, spread over the window: at most twice the instance's part in one window.
		full.Rate = full.Capacity / float64(rule.PolicyWindow())
	}
	n := float64(max(1, instances))
	s := slice{part: full.Capacity / n, whole: full.Capacity, partRate: full.Rate / n, wholeRate: full.Rate, share: share}
	if share > 0 {
		s.part, s.whole = max(1, s.part), max(1, s.whole)
	}
	return s
}

// confirmed is the share that counts: the last one seen in Redis; the base share of a key that has never moved; the floor
// where neither is known or no more may be used.
func (s *local) confirmed(l *bucket.Limit, t Terms) limit.Share {
	share := l.Base
	switch {
	case s.seen:
		share = s.share
	case l.Moved:
		share = min(share, t.Floor)
	}
	if t.FloorOnly {
		share = min(share, t.Floor)
	}
	return share
}

func (s *local) refill(now int64, sl slice) {
	if passed := now - s.at; passed > 0 {
		seconds := float64(passed) / float64(time.Second)
		s.part += seconds * sl.partRate
		s.whole += seconds * sl.wholeRate
		s.at = now
	}
	s.part, s.whole = min(s.part, sl.part), min(s.whole, sl.whole)
}

// note keeps fullAt true after a change.
func (s *local) note(sl slice) {
	at := int64(math.MaxInt64)
	if s.owed == 0 {
		at = s.at + int64(wait(sl.part-s.part, sl.partRate))
	}
	s.fullAt.Store(at)
}

// Observe keeps the limiter warm: Redis has decided d for the limits of one request.
func (l *Local) Observe(now time.Time, limits []bucket.Limit, d *limit.Decision, t Terms) {
	at := l.since(now)
	for i := range limits {
		lim := &limits[i]
		if d.Rule != nil && d.Key == lim.Key {
			l.observeLevel(at, lim, d, t)
		} else if d.Outcome == limit.Allowed {
			l.observeCharge(at, lim, t)
		}
	}
}

func (l *Local) observeLevel(at int64, lim *bucket.Limit, d *limit.Decision, t Terms) {
	s := l.lock(at, lim, t)
	defer s.mu.Unlock()
	s.seen, s.share = true, d.Share
	sl := sliceOf(d.Rule, d.Share, t.Instances)
	s.whole = min(d.Tokens, sl.whole)
	s.part = min(d.Tokens/float64(max(1, t.Instances)), sl.part)
	s.at = at
	s.note(sl)
}

// observeCharge is for a limit that the decision does not speak of because another had less left.
func (l *Local) observeCharge(at int64, lim *bucket.Limit, t Terms) {
	s := l.lock(at, lim, t)
	defer s.mu.Unlock()
	sl := sliceOf(lim.Rule, s.confirmed(lim, t), t.Instances)
	s.refill(at, sl)
	s.whole -= float64(lim.Cost)
	s.part -= float64(lim.Cost) / float64(max(1, t.Instances))
	s.note(sl)
}

// Take decides a request without Redis: all limits or none. What it admits is owed.
//
// Refused says that the caller has used up the region's whole slice as far as this instance knows; Unable, that only the
// instance's part of it is used up. RetryAfter is zero where the request can never fit that part.
func (l *Local) Take(now time.Time, limits []bucket.Limit, t Terms) limit.Decision {
	at := l.since(now)
	var strictest limit.Decision
	for i := range limits {
		d := l.takeOne(at, &limits[i], t)
		if d.Outcome != limit.Allowed {
			for j := range limits[:i] {
				l.giveBack(at, &limits[j], t)
			}
			return d
		}
		if i == 0 || d.Remaining < strictest.Remaining {
			strictest = d
		}
	}
	return strictest
}

func (l *Local) takeOne(at int64, lim *bucket.Limit, t Terms) limit.Decision {
	s := l.lock(at, lim, t)
	defer s.mu.Unlock()
	sl := sliceOf(lim.Rule, s.confirmed(lim, t), t.Instances)
	s.refill(at, sl)
	cost := float64(lim.Cost)
	d := limit.Decision{Source: limit.SourceFallback, Key: lim.Key, Rule: lim.Rule, Revision: lim.Revision, Share: sl.share, Degraded: true}
	switch {
	case lim.Cost > lim.Rule.Capacity:
		d.Outcome = limit.TooLarge
	case s.part >= cost-tolerance:
		d.Outcome = limit.Allowed
		s.part -= cost
		s.whole -= cost
		l.owe(s, lim)
	default:
		d.Outcome = limit.Refused
		if s.whole >= cost-tolerance {
			d.Outcome = limit.Unable
			s.whole -= cost // what the caller asks for counts, or it could ask for more than its slice for ever
		}
		if cost <= sl.part {
			d.RetryAfter = wait(cost-s.part, sl.partRate)
		}
	}
	s.note(sl)
	d.Tokens = s.part
	d.Remaining = int64(max(0, math.Floor(s.part+tolerance)))
	d.ResetAfter = wait(sl.part-s.part, sl.partRate)
	return d
}

// owe notes that lim's cost was admitted without Redis. The lock is held.
func (l *Local) owe(s *local, lim *bucket.Limit) {
	if lim.Cost == 0 {
		return
	}
	if s.owed == 0 {
		l.owing.Add(1)
	}
	s.owed += lim.Cost
	s.last = *lim
	s.last.Cost, s.last.Ahead, s.last.Owed = 0, 0, 0
}

// lock finds the state of a limit's key and locks it. A key never seen starts with its whole part; one that pushes out
// another that is worth something, so that memory is short, starts with a single token: a bucket that was pushed out does
// not come back full.
func (l *Local) lock(at int64, lim *bucket.Limit, t Terms) *local {
	if at-l.clock.Load() > int64(10*time.Millisecond) {
		l.clock.Store(at)
	}
	for {
		s := l.buckets.Get(lim.Key)
		if s == nil {
			s = l.buckets.GetOrAdd(lim.Key, func(fresh, lost *local) { l.begin(at, lim, t, fresh, lost) })
		}
		s.mu.Lock()
		if !s.gone {
			return s
		}
		s.mu.Unlock()
	}
}

func (l *Local) begin(at int64, lim *bucket.Limit, t Terms, fresh, lost *local) {
	sl := sliceOf(lim.Rule, fresh.confirmed(lim, t), t.Instances)
	fresh.at, fresh.part, fresh.whole = at, sl.part, sl.whole
	if lost == nil {
		return
	}
	if l.worth(lost) > 0 {
		fresh.part = min(1, fresh.part)
	}
	lost.mu.Lock()
	defer lost.mu.Unlock()
	lost.gone = true
	l.claim(lost)
}

// giveBack undoes takeOne for a limit of a request that another limit refused.
func (l *Local) giveBack(at int64, lim *bucket.Limit, t Terms) {
	s := l.lock(at, lim, t)
	defer s.mu.Unlock()
	back := min(lim.Cost, s.owed)
	s.part += float64(back)
	s.whole += float64(back)
	if s.owed -= back; s.owed == 0 && back > 0 {
		l.owing.Add(-1)
	}
	s.note(sliceOf(lim.Rule, s.confirmed(lim, t), t.Instances))
}

// Len is the number of keys remembered, Evicted how many were ever forgotten for want of room.
func (l *Local) Len() int { return l.buckets.Len() }

// Evicted is the number of keys ever forgotten for want of room.
func (l *Local) Evicted() uint64 { return l.buckets.Evicted() }

func (l *Local) since(now time.Time) int64 { return int64(now.Sub(l.start)) }

// tolerance is how far below a whole token a level may lie by rounding and still count as one.
const tolerance = 1e-9

// wait is the time until missing tokens have come at rate per second.
func wait(missing, rate float64) time.Duration {
	switch {
	case missing <= tolerance:
		return 0
	case rate <= 0:
		return longest
	}
	seconds := missing / rate
	if seconds >= longest.Seconds() {
		return longest
	}
	return time.Duration(math.Ceil(seconds * float64(time.Second)))
}

// longest stands for a time that will never come, within what a header can say.
const longest = 10 * 365 * 24 * time.Hour
