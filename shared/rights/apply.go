package rights

import (
	"time"

	"partidor.dev/partidor/shared/limit"
)

// Apply credits what a row brings beyond what was applied before, by maximum, in one step (R4). Growing the share adds no
// token beyond the ride (R5). Of a loan the region keeps the whole tokens that fit under its effective capacity and counts
// the rest as refused (R6). Unless the verdict is Applied nothing has changed and the Ack must not be sent.
func (s *State) Apply(now time.Time, row Row) (Ack, Verdict) {
	p := s.Pair(row.From)
	if p == nil {
		return Ack{}, Ahead
	}
	if s.Phase != Active {
		return Ack{}, Inactive
	}
	if v := meet(row.Incarnation, p.Incarnation, row.Receiver, s.Incarnation); v != Applied {
		return Ack{}, v
	}
	if row.Epoch != p.Epoch {
		return Ack{}, Foreign
	}
	share := max(row.Sent.Share-p.In.Share, 0)
	ride := max(row.Sent.Ride-p.In.Ride, 0)
	loan := max(row.Sent.Loan-p.In.Loan, 0)
	if absurd(row.Sent) || s.Share+s.Waiting+share > limit.Whole {
		return Ack{}, Absurd
	}
	s.Settle(now)
	s.credit(now, share)
	p.In.Share += share
	s.Tokens += float64(ride) / Milli
	p.In.Ride += ride
	s.clamp()
	kept := min(loan, whole(s.Effective()-s.Tokens))
	s.Tokens += float64(kept)
	p.In.Loan += loan
	p.In.Refused += loan - kept
	return s.ack(row.To, p), Applied
}

func (s *State) ack(from string, p *Pair) Ack {
	return Ack{
		From: from, To: p.Region, Incarnation: s.Incarnation, Receiver: p.Incarnation, Epoch: p.Epoch,
		Received: p.In,
	}
}

// Acknowledge lifts the holds on what the peer has settled, takes back what it refused, and clamps (R1, R6).
func (s *State) Acknowledge(now time.Time, ack Ack) Verdict {
	p := s.Pair(ack.From)
	if p == nil {
		return Ahead
	}
	if s.Phase != Active {
		return Inactive
	}
	if v := meet(ack.Incarnation, p.Incarnation, ack.Receiver, s.Incarnation); v != Applied {
		return v
	}
	if ack.Epoch != p.Epoch {
		return Foreign
	}
	r := ack.Received
	if absurd(r.Sent) || r.Share > p.Out.Share || r.Ride > p.Out.Ride || r.Loan > p.Out.Loan || r.Refused < 0 || r.Refused > r.Loan {
		return Absurd
	}
	s.Settle(now)
	refused := max(r.Refused-p.Acked.Refused, 0)
	p.Acked.Share = max(p.Acked.Share, r.Share)
	p.Acked.Ride = max(p.Acked.Ride, r.Ride)
	p.Acked.Loan = max(p.Acked.Loan, r.Loan)
	p.Acked.Refused += refused
	p.Opened = true
	s.Tokens += float64(refused)
	s.clamp()
	return Applied
}

// absurd tells whether counters cannot have come from this protocol.
func absurd(s Sent) bool {
	return s.Share < 0 || s.Ride < 0 || s.Loan < 0 || s.Share > MaxCounter || s.Ride > MaxCounter || s.Loan > MaxCounter
}
