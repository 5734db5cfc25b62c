package bucket

import (
	"math/big"

	"partidor.dev/partidor/shared/limit"
)

// exact is a token bucket by its plain definition, in rational numbers: the level grows by rate × time up to the capacity
// and falls by what is taken. It shares no code with the package.
type exact struct {
	there bool
	// begun: the last request found no bucket. One that starts full and is not charged leaves none either.
	begun    bool
	level    *big.Rat
	at       int64
	revision limit.Revision
	rule     *limit.Rule
	base     limit.Share
	rights   Rights
	largest  int64
}

func rat(a, b int64) *big.Rat { return big.NewRat(a, b) }

func (x *exact) share() limit.Share {
	if x.rights.Moved {
		return x.rights.Share
	}
	return x.base
}

func (x *exact) capacity() *big.Rat {
	of := func(s limit.Share) *big.Rat {
		return new(big.Rat).Mul(rat(x.rule.Capacity, 1), rat(int64(s), 1_000_000))
	}
	c := of(x.share())
	if x.rights.Held > 0 {
		c.Sub(c, rat(x.rights.Held, 1))
		if low := of(min(x.rights.Floor, x.share())); c.Cmp(low) < 0 {
			c = low
		}
	}
	return c
}

func (x *exact) clamp() {
	if c := x.capacity(); x.level.Cmp(c) > 0 {
		x.level = c
	}
}

// open settles up to now under what was in force, and then takes a rule that is not older.
func (x *exact) open(l *Limit, now int64) {
	if !x.there {
		*x = exact{largest: l.Rule.Capacity, there: true, begun: true, rule: l.Rule, base: l.Base, revision: l.Revision, rights: x.rights}
		x.level, x.at = new(big.Rat).Mul(rat(l.Rule.Capacity, 1), rat(int64(l.Base-l.Late), 1_000_000)), now
		if x.rights.Moved {
			x.level = new(big.Rat)
		}
		return
	}
	x.begun = false
	if now > x.at {
		rate := new(big.Rat).Mul(rat(x.rule.Refill, x.rule.PeriodSeconds), rat(int64(x.share()), 1_000_000))
		x.level = new(big.Rat).Add(x.level, rate.Mul(rate, rat(now-x.at, 1_000_000)))
	}
	x.at = now
	x.clamp()
	if !x.revision.Newer(l.Revision) {
		x.rule, x.base, x.revision = l.Rule, l.Base, l.Revision
	}
	x.largest = max(x.largest, x.rule.Capacity)
	x.clamp()
}

func (x *exact) settleOwed(owed int64) {
	if owed == 0 {
		return
	}
	x.begun = false
	level := new(big.Rat).Sub(x.level, rat(owed, 1))
	if low := new(big.Rat).Neg(x.capacity()); owed > 0 && level.Cmp(low) < 0 {
		level = low
		if x.level.Cmp(low) < 0 {
			level = x.level
		}
	}
	x.level = level
	x.clamp()
}

// forget undoes the beginning of a full bucket that was not touched.
func (x *exact) forget() {
	if x.begun && x.level.Cmp(x.capacity()) == 0 {
		x.there = false
	}
}

func (x *exact) take(n int64) { x.level = new(big.Rat).Sub(x.level, rat(n, 1)) }
