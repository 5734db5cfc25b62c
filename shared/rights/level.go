package rights

import (
	"time"

	"partidor.dev/partidor/shared/bucket"
	"partidor.dev/partidor/shared/limit"
)

// present is how far below 1 a token counts as whole, as in package bucket.
const present = 1e-9

// Slice is what the region may hold and how it refills: the slice of the share in force, its capacity less what is held for
// unacknowledged loans, never below the floor's.
func (s *State) Slice() bucket.Slice {
	return s.Numbers.Slice(bucket.Rights{Share: s.Share, Held: s.Held(), Floor: s.Floor, Moved: true}, false)
}

// Effective is the capacity in force, in tokens.
func (s *State) Effective() float64 { return s.Slice().Capacity }

// capacity is C·share in tokens.
func (s *State) capacity(share limit.Share) float64 {
	return s.Numbers.Slice(bucket.Rights{Share: share, Moved: true}, false).Capacity
}

// clamp cuts tokens above the effective capacity. It never raises.
func (s *State) clamp() { s.Tokens = min(s.Tokens, s.Effective()) }

// Settle refills up to now under the share, hold and rule in force (R1), and puts share into force that has waited long
// enough. A clock that went back gives nothing and is followed.
func (s *State) Settle(now time.Time) {
	s.Level = s.Slice().Refill(s.Level, now.UnixMicro())
	if s.Waiting > 0 && s.Phase == Active && (!s.windowed() || now.UnixMicro() >= s.Due) {
		s.Share += s.Waiting
		s.Waiting = 0
	}
}

func (s *State) windowed() bool { return s.Numbers.Algorithm != limit.TokenBucket }

// credit takes in share: at once, of a window algorithm after one whole window.
func (s *State) credit(now time.Time, share limit.Share) {
	switch {
	case !s.windowed():
		s.Share += share
	case share > 0:
		s.Waiting += share
		s.Due = now.UnixMicro() + s.Numbers.Span().Microseconds()
	}
}

// Adopt takes a newer rule: settle under the old one, clamp under the new one, never raise. An older or equal revision
// changes nothing (R16).
func (s *State) Adopt(now time.Time, numbers bucket.Numbers, revision limit.Revision) {
	if !revision.Newer(s.Revision) {
		return
	}
	s.Settle(now)
	s.Numbers, s.Revision = numbers, revision
	s.clamp()
}

// Take charges cost whole tokens, or nothing, and tells which.
func (s *State) Take(now time.Time, cost int64) bool {
	s.Settle(now)
	if s.Tokens < float64(cost)-present {
		return false
	}
	s.Tokens = bucket.Tidy(s.Tokens - float64(cost))
	return true
}
