package bucket

import (
	"math"

	"partidor.dev/partidor/shared/limit"
)

// Env is what holds for all buckets of a store at one moment. Times are microseconds since 1970 by the store's clock.
type Env struct {
	Now int64
	// Loss is when the store last lost its data, 0 for never; buckets that fill within Horizon then hold only what has
	// come in since.
	Loss, Horizon int64
	// Fenced: the region may use no more than its floor.
	Fenced bool
}

// State is one bucket as it is kept between decisions. The zero value is a bucket that is not there.
type State struct {
	There bool
	Level
	Window
	Revision limit.Revision
	Numbers  Numbers
	Rights   Rights
}

// bucket is a State in work: settled, adopted, perhaps charged. It is kept only if dirty.
type bucket struct {
	State
	slice Slice
	// stepped: the clock went back. newer: a strictly newer revision was taken. stale: the bucket goes by a newer revision
	// than the asker's. begun: it was not there.
	stepped, newer, stale, begun bool
	dirty                        bool
	// most is what may count of the base share while the key has never moved.
	most limit.Share
	// last is the time (µs) of the level before it was settled; added how many tokens the log has yet to take in.
	last  int64
	added int
}

// open settles s under its own rule and rights, then lets it go by l's rule unless it has seen a newer one. The level is
// clamped to the slice and never raised.
func open(s State, l *Limit, env Env) bucket {
	b := bucket{State: s, most: l.Counting()}
	if l.Moved && !s.Rights.Moved {
		b.Rights.Lost = true
	}
	if !b.Rights.Moved || b.Rights.Lost {
		b.Rights.Floor = l.Floor
	}
	if s.There {
		b.measure(env)
		b.stepped = b.At > env.Now
		b.settle(env.Now)
	}
	b.adopt(l, env)
	return b
}

// measure takes the slice that numbers and rights amount to. A window counts no more of the base share than the asker allows.
func (b *bucket) measure(env Env) {
	n := b.Numbers
	if n.Algorithm != limit.TokenBucket {
		n.Base = min(n.Base, b.most)
	}
	b.slice = n.Slice(b.Rights, env.Fenced)
}

func (b *bucket) settle(now int64) {
	if b.Numbers.Algorithm == limit.TokenBucket {
		b.Level = b.slice.Refill(b.Level, now)
		return
	}
	b.roll(now)
}

func (b *bucket) adopt(l *Limit, env Env) {
	known, asked := b.Numbers, l.numbers()
	order := l.Revision.Compare(b.Revision)
	if !b.There {
		order, b.begun = 1, true
	}
	b.stale, b.newer = order < 0, order > 0
	if order > 0 || order == 0 && asked != known {
		b.Revision, b.Numbers = l.Revision, asked
		b.measure(env)
		// Time that rounding left unspent was earned at the old rate. At the new one it could be worth more.
		b.At = env.Now
	}
	windowed := b.Numbers.Algorithm != limit.TokenBucket
	if b.begun {
		b.There, b.Level = true, Level{b.fresh(env), env.Now}
	}
	if b.begun || b.Numbers.kind() != known.kind() {
		b.Tokens = min(b.Tokens, b.slice.Capacity)
		if windowed {
			b.beginWindow(env.Now)
		}
	}
	if windowed {
		b.Tokens = b.room(env.Now)
	} else {
		b.Tokens = min(b.Tokens, b.slice.Capacity)
	}
}

// fresh is the level of a bucket that was not there: full, unless the store lost its data less than a time to fill ago.
// Shards begin at nothing, so that changing their number refills nobody; so does a key that has moved. What the base split has
// brought of late may be used up elsewhere: it has to come in.
func (b *bucket) fresh(env Env) float64 {
	if b.Numbers.Shards > 1 || b.Rights.Moved && !b.Rights.Lost {
		return 0
	}
	full := b.slice.Capacity
	if b.most < b.Numbers.Base && !b.Rights.Lost {
		full = min(full, b.Numbers.part(b.most))
	}
	if env.Loss > 0 && (b.Rights.Lost || b.Numbers.fill() <= float64(env.Horizon)/1000) {
		since := float64(max(0, env.Now-env.Loss))
		if b.Numbers.Algorithm != limit.TokenBucket {
			if since < b.Numbers.fill()*1000 {
				return 0
			}
			return full
		}
		return min(full, float64(since*b.slice.num)/b.slice.den)
	}
	if b.Rights.Lost {
		return 0
	}
	return full
}

// settleOwed takes what the asker has admitted without asking, or puts back what it took ahead.
func (b *bucket) settleOwed(owed int64) {
	if owed == 0 {
		return
	}
	level := b.Tokens - float64(owed)
	if owed > 0 && level < -b.slice.Capacity {
		level = min(b.Tokens, -b.slice.Capacity)
	}
	level = min(level, b.slice.Capacity)
	if b.Numbers.Algorithm == limit.TokenBucket {
		b.Tokens = level
	} else {
		b.consume(b.Tokens - level)
	}
	b.dirty = true
}

// fits judges cost, and for a refusal tells how long it would last (µs).
func (b *bucket) fits(cost, now int64) (limit.Outcome, float64) {
	c := float64(cost)
	switch {
	case cost > b.Numbers.Capacity:
		return limit.TooLarge, math.Inf(1)
	case b.Tokens >= c-tolerance:
		return limit.Allowed, 0
	case c > b.slice.Capacity+tolerance:
		return limit.Refused, math.Inf(1)
	}
	if b.Numbers.Algorithm != limit.TokenBucket {
		return limit.Refused, b.windowWait(c, now)
	}
	return limit.Refused, b.slice.Wait(b.Tokens, c)
}

// spare is how many tokens ahead the bucket can give beyond cost.
func (b *bucket) spare(cost, ahead int64) float64 {
	if b.Numbers.Algorithm != limit.TokenBucket {
		return 0
	}
	return max(0, min(float64(ahead), math.Floor(b.Tokens-float64(cost)+tolerance)))
}

func (b *bucket) charge(amount float64) {
	if amount == 0 {
		b.note()
		return
	}
	b.consume(amount)
	b.dirty = true
}

// note keeps what must be remembered of a refusal: time pulled back after a clock step, a newer revision of a bucket that is
// there, the beginning of one that is not full.
func (b *bucket) note() {
	if b.begun {
		b.dirty = b.dirty || b.Tokens < b.slice.Capacity
		return
	}
	b.dirty = b.dirty || b.stepped || b.newer
}
