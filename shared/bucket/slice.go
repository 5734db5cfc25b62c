package bucket

import (
	"math"

	"partidor.dev/partidor/shared/limit"
)

// tolerance: a token counts as present from this much below 1, because sums of refills like 0.1 + 0.1 + … may fall short of
// it by rounding. What is taken that way stays in the level as debt, so it is never minted.
const tolerance = 1e-9

// epsilon is one step of a double near 1.
const epsilon = 0x1p-52

// Levels below short are kept in steps of 1/steps token: shares in whole percents of a rate per second are exact in them, and a
// number of at most 15 digits is half as long and as costly in Redis as one of 17. A write loses less than one step (at rates
// where a microsecond is worth more) and mints at most 1e-12 token, the noise of the multiplication.
const (
	short = 1e7
	steps = 1e8
)

// Rights are what a key holds in this region once its share has moved. The zero value is a key that never moved.
type Rights struct {
	// Share in force, Held whole tokens lent and not acknowledged, Floor that never leaves the region.
	Share limit.Share
	Held  int64
	Floor limit.Share
	// Moved: the three above are known. Lost: the key has moved and they are not; Floor alone counts then.
	Moved bool
	Lost  bool
}

// Slice is what one bucket may hold and how it refills. Every float here and below goes through an explicit conversion where
// a product meets a sum, so that no compiler fuses them and the results equal the scripts' to the last bit.
type Slice struct {
	Share limit.Share
	// Capacity is the effective capacity in tokens.
	Capacity float64
	// num/den tokens per microsecond.
	num, den float64
}

// Slice is the part of the numbers that rights allow; fenced says that the region may use no more than its floor.
func (n *Numbers) Slice(r Rights, fenced bool) Slice {
	share, held := n.Base, r.Held
	if r.Moved {
		share = r.Share
	}
	if r.Lost || fenced {
		held = 0
		if r.Lost || share > r.Floor {
			share = r.Floor
		}
	}
	s := Slice{Share: share, Capacity: n.part(share)}
	if held > 0 {
		s.Capacity = max(s.Capacity-float64(held), n.part(min(r.Floor, share)))
	}
	s.num = float64(n.Refill) * float64(share)
	s.den = float64(n.Period) * 1e12 * float64(n.Shards)
	return s
}

func (n *Numbers) part(share limit.Share) float64 {
	c := float64(n.Capacity)
	if share != limit.Whole {
		c = c * float64(share) / float64(limit.Whole)
	}
	return c / float64(n.Shards)
}

// fill is the time from empty to full in milliseconds, whatever the share; for windows, the window.
func (n *Numbers) fill() float64 {
	if n.Algorithm == limit.TokenBucket {
		return float64(n.Capacity) * float64(n.Period) / float64(n.Refill) * 1000
	}
	switch n.Calendar {
	case limit.CalendarHour:
		return 3600_000
	case limit.CalendarDay:
		return 86_400_000
	case limit.CalendarMonth:
		return 31 * 86_400_000
	}
	return float64(n.Window) * 1000
}

// ttl is how long in milliseconds an untouched bucket is kept: twice the time to fill, at least a second. Shards, which would
// begin at nothing again, stay for an hour.
func (n *Numbers) ttl() float64 {
	if n.Shards > 1 {
		return max(2*n.fill(), 3600_000)
	}
	return max(2*n.fill(), 1000)
}

// Level is how much a bucket holds at a time.
type Level struct {
	// Tokens, below zero while there is debt.
	Tokens float64
	// At in microseconds since 1970 by the store's clock. It may lie a little before the last write: refill that Tokens
	// could not hold stays in At, as far as whole microseconds can say it.
	At int64
}

// Refill brings the level to now (µs). What rounding would drop from the sum stays in At, rounded so that nothing is
// minted. A clock stepped back refills nothing and pulls At back.
func (s Slice) Refill(l Level, now int64) Level {
	if l.Tokens >= s.Capacity {
		return Level{s.Capacity, now}
	}
	if now <= l.At {
		return Level{l.Tokens, now}
	}
	gain := float64(float64(now-l.At)*s.num) / s.den
	sum := l.Tokens + gain
	if sum >= s.Capacity {
		return Level{s.Capacity, now}
	}
	added := sum - l.Tokens
	rest := (l.Tokens - (sum - added)) + (gain - added)
	if sum < short && sum > -short {
		q := math.Floor(float64(sum*steps)+1e-4) / steps
		rest += sum - q
		sum = q
	} else if rest < 0 {
		below := sum - float64(math.Abs(sum)*(epsilon/2)) // the next double below, never below l.Tokens
		rest += sum - below
		sum = below
	}
	var back float64
	if rest > 0 {
		back = min(math.Floor(float64(rest*s.den)/s.num), float64(now-l.At))
	}
	return Level{sum, now - int64(back)}
}

// tidy gives the step that x is at, where a subtraction has left it a hair away.
func tidy(x float64) float64 {
	if x >= short || x <= -short {
		return x
	}
	q := math.Floor(float64(x*steps)+0.5) / steps
	if off := q - x; off < 1e-10 && off > -1e-10 {
		return q
	}
	return x
}

// Wait is the time in whole µs, rounded up, until cost tokens are there if nobody takes any; +Inf where that never comes.
func (s Slice) Wait(tokens, cost float64) float64 {
	missing := cost - tokens
	if missing <= tolerance {
		return 0
	}
	if s.num <= 0 {
		return math.Inf(1)
	}
	if slack := float64(cost*(4*epsilon)) - tolerance/2; slack > 0 {
		missing += slack
	}
	return math.Ceil(float64(missing*s.den) / s.num)
}
