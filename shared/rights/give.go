package rights

import (
	"math"
	"time"

	"partidor.dev/partidor/shared/limit"
)

// Give debits share for a peer: at most amount, never what would leave less than keep or than the floor, and never so much
// that the loans still out would reach into the floor's capacity (R2). Tokens above the smaller capacity are clipped and
// ride along. It returns what was debited, possibly 0; the row that credits the peer is Row(to).
func (s *State) Give(now time.Time, to string, amount, keep limit.Share) limit.Share {
	p := s.Pair(to)
	if s.Phase != Active || p == nil {
		return 0
	}
	s.Settle(now)
	held := limit.Share(math.Ceil(float64(s.Held()) * float64(limit.Whole) / float64(s.Numbers.Capacity)))
	amount = min(amount, s.Share-max(keep, s.Floor+held), MaxCounter-p.Out.Share)
	if amount <= 0 {
		return 0
	}
	s.Share -= amount
	p.Out.Share += amount
	if clipped := s.Tokens - s.Effective(); clipped > 0 && !s.windowed() {
		p.Out.Ride += min(int64(math.Floor(clipped*Milli)), MaxCounter-p.Out.Ride)
		s.clamp()
	}
	return amount
}

// Lend debits whole tokens for a peer: at most amount, never what would leave less than keep tokens in the bucket, nor an
// effective capacity below the floor's (R3); window algorithms lend nothing. The amount is held until the peer acknowledges it. It returns what was lent,
// possibly 0.
func (s *State) Lend(now time.Time, to string, amount int64, keep float64) int64 {
	p := s.Pair(to)
	if s.Phase != Active || p == nil || s.windowed() {
		return 0
	}
	s.Settle(now)
	spare := s.capacity(s.Share) - float64(s.Held()) - s.capacity(s.Floor)
	amount = min(amount, whole(s.Tokens-max(keep, 0)), whole(spare), MaxCounter-p.Out.Loan)
	if amount <= 0 {
		return 0
	}
	s.Tokens -= float64(amount)
	p.Out.Loan += amount
	return amount
}

// whole is how many whole tokens are in x without any tolerance: what is lent was really there.
func whole(x float64) int64 {
	if x <= 0 {
		return 0
	}
	return int64(math.Floor(min(x, MaxCounter)))
}

// Row is the peer's row as it stands, to be sent while Active until Pending is false. ok is false if the region may not
// send now.
func (s *State) Row(from, to string) (row Row, ok bool) {
	p := s.Pair(to)
	if s.Phase != Active || p == nil {
		return Row{}, false
	}
	return Row{
		From: from, To: to, Incarnation: s.Incarnation, Receiver: p.Incarnation, Epoch: p.Epoch,
		Base: s.Base, Sent: p.Out,
	}, true
}
