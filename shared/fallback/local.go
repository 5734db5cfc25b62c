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

// DefaultMaxBuckets bounds a Local that is told nothing else: about 65 MB when full.
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
	// vanished counts buckets that were fuller than they can have become.
	vanished atomic.Uint64
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
	// exact: whole is what Redis said, and nothing was decided without it since.
	exact bool
	// in is the slice that counted at the time at.
	in slice
	// owed is what was admitted here and not yet taken from Redis, in whole tokens, under last.
	owed int64
	last bucket.Limit
	// gone: the key was forgotten; whoever still holds this must look it up anew.
	gone bool
	// fullAt is when part will be full again: from then on nothing is owed and nothing lost by forgetting the key.
	fullAt atomic.Int64
}

// worth tells what forgetting a key would lose: nothing where it is full again, for it would start full.
func (l *Local) worth(s *local) int {
	if s.fullAt.Load() > l.clock.Load() {
		return 1
	}
	return 0
}

// confirmed is the share that counts: the last one seen in Redis; the base share of a key that has never moved; the floor
// where neither is known or no more may be used.
func (s *local) confirmed(l *bucket.Limit, t Terms) limit.Share {
	share := l.Base
	if l.Rule.Algorithm != limit.TokenBucket {
		share = l.Counting()
	}
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

// refill brings the levels to now under the slice that counted since, then lets sl count: levels are clamped to it, never
// raised.
func (s *local) refill(now int64, sl slice) {
	if edge := s.in.edge; edge > 0 && now >= edge {
		s.part, s.whole = s.in.part, s.in.whole
		s.at = now
	} else if passed := now - s.at; passed > 0 {
		seconds := float64(passed) / float64(time.Second)
		s.part = min(s.part+seconds*s.in.partRate, s.in.part)
		s.whole = min(s.whole+seconds*s.in.wholeRate, s.in.whole)
		s.at = now
	}
	s.in = sl
	s.part, s.whole = min(s.part, sl.part), min(s.whole, sl.whole)
}

// note keeps fullAt true after a change.
func (s *local) note() { s.fullAt.Store(s.at + int64(s.in.wait(s.at, s.in.part-s.part))) }

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
	sl := l.slice(at, d.Rule, d.Share, t.Instances)
	if s.exact && s.share == d.Share && sl.edge == 0 {
		s.refill(at, s.in)
		before := d.Tokens + float64(d.Ahead)
		if d.Outcome == limit.Allowed {
			before += float64(lim.Cost)
		}
		if before >= sl.whole-1 && s.whole < sl.whole/2 {
			l.vanished.Add(1)
		}
	}
	s.seen, s.exact, s.share, s.in = true, true, d.Share, sl
	s.whole = min(d.Tokens, sl.whole)
	s.part = min(d.Tokens/float64(max(1, t.Instances)), sl.part)
	s.at = at
	s.note()
}

// observeCharge is for a limit that the decision does not speak of because another had less left.
func (l *Local) observeCharge(at int64, lim *bucket.Limit, t Terms) {
	s := l.lock(at, lim, t)
	defer s.mu.Unlock()
	s.exact = false
	s.refill(at, l.slice(at, lim.Rule, s.confirmed(lim, t), t.Instances))
	s.whole -= float64(lim.Cost)
	s.part -= float64(lim.Cost) / float64(max(1, t.Instances))
	s.note()
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
	sl := l.slice(at, lim.Rule, s.confirmed(lim, t), t.Instances)
	s.refill(at, sl)
	cost := float64(lim.Cost)
	s.exact = false
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
			d.RetryAfter = sl.wait(at, cost-s.part)
		}
	}
	s.note()
	d.Tokens = s.part
	d.Remaining = int64(max(0, math.Floor(s.part+tolerance)))
	d.ResetAfter = sl.wait(at, sl.part-s.part)
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
	sl := l.slice(at, lim.Rule, fresh.confirmed(lim, t), t.Instances)
	fresh.at, fresh.in, fresh.part, fresh.whole = at, sl, sl.part, sl.whole
	if lost == nil {
		return
	}
	if l.worth(lost) > 0 {
		fresh.part = min(1, fresh.part)
	}
	lost.mu.Lock()
	defer lost.mu.Unlock()
	lost.gone = true
	l.clear(lost)
}

// GiveBack undoes a Take that admitted limits, because somebody else has refused the request.
func (l *Local) GiveBack(now time.Time, limits []bucket.Limit, t Terms) {
	at := l.since(now)
	for i := range limits {
		l.giveBack(at, &limits[i], t)
	}
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
	s.note()
}

// Len is the number of keys remembered, Evicted how many were ever forgotten for want of room.
func (l *Local) Len() int { return l.buckets.Len() }

// Vanished is how often a bucket in Redis was found full that cannot have filled up since it was last seen: it was evicted,
// deleted or lost. Tokens from another region can look the same where the limit is small.
func (l *Local) Vanished() uint64 { return l.vanished.Load() }

// Evicted is the number of keys ever forgotten for want of room.
func (l *Local) Evicted() uint64 { return l.buckets.Evicted() }

func (l *Local) since(now time.Time) int64 { return int64(now.Sub(l.start)) }
