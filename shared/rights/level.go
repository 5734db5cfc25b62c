package rights

import (
	"math"
	"time"

	"partidor.dev/partidor/shared/limit"
)

// present is from where on a token counts as whole: sums of floating refills miss it by less than this.
const present = 1e-9

// Millis is a time as Redis stores it: milliseconds since 1970, microseconds kept. It is computed as the scripts do.
func Millis(t time.Time) float64 {
	return float64(t.Unix())*1000 + float64(t.Nanosecond()/1000)/1000
}

// capacity is C·share in tokens.
func (l Limit) capacity(share limit.Share) float64 {
	return float64(l.Capacity) * float64(share) / float64(limit.Whole)
}

// rate is R·share in tokens per millisecond.
func (l Limit) rate(share limit.Share) float64 {
	return float64(l.Refill) * float64(share) / float64(limit.Whole) / (float64(l.PeriodSeconds) * 1000)
}

// Effective is the capacity in force: the slice's less what is held for unacknowledged loans, never below the floor's.
func (s *State) Effective() float64 {
	return max(s.Limit.capacity(s.Share)-float64(s.Held()), s.Limit.capacity(min(s.Floor, s.Share)))
}

// clamp cuts tokens above the effective capacity. It never raises.
func (s *State) clamp() { s.Tokens = min(s.Tokens, s.Effective()) }

// Settle refills up to now under the share, hold and limit in force (R1). A clock that went back gives nothing and is
// followed.
func (s *State) Settle(now time.Time) {
	ms := Millis(now)
	if elapsed := ms - s.TS; elapsed > 0 {
		s.Tokens += elapsed * s.Limit.rate(s.Share)
	}
	s.TS = ms
	s.clamp()
}

// Adopt takes a newer rule: settle under the old one, clamp under the new one, never raise. An older or equal revision
// changes nothing (R16).
func (s *State) Adopt(now time.Time, l Limit, revision limit.Revision) {
	if !revision.Newer(s.Revision) {
		return
	}
	s.Settle(now)
	s.Limit, s.Revision = l, revision
	s.clamp()
}

// Take charges cost whole tokens, or nothing, and tells which.
func (s *State) Take(now time.Time, cost int64) bool {
	s.Settle(now)
	if s.Tokens < float64(cost)-present {
		return false
	}
	s.Tokens -= float64(cost)
	return true
}

// whole is how many whole tokens are in x, at least 0.
func whole(x float64) int64 {
	if x <= 0 {
		return 0
	}
	return int64(math.Floor(min(x+present, MaxCounter)))
}
