package rights

import (
	"time"

	"partidor.dev/partidor/shared/bucket"
	"partidor.dev/partidor/shared/limit"
)

// Fence ends the region's lease: the floor is in force, nothing is accepted or sent (R13).
func (s *State) Fence(now time.Time) {
	if s.Phase != Active {
		return
	}
	s.Settle(now)
	s.Phase = Fenced
	s.Share = min(s.Share, s.Floor)
	s.clamp()
}

// Begin starts a new incarnation: number comes from a durable counter outside this Redis and was never used before (R8).
// After data loss (lost) the bucket is empty; after a mere fence it keeps what is there, up to the floor's capacity. Base
// and Floor must be those of the key's first move; a floor that is not known for certain is 0.
func (s *State) Begin(now time.Time, number int64, lost bool) bool {
	if number <= s.Incarnation {
		return false
	}
	if lost {
		s.Level = bucket.Level{At: now.UnixMicro()}
	} else {
		s.Settle(now)
	}
	s.Moved = true
	s.Incarnation = number
	s.Phase = Relearning
	s.Share, s.Waiting = s.Floor, 0
	s.Pairs = nil
	s.clamp()
	return true
}

// Void takes in that a peer lives under a higher incarnation: settle, record it, lift the holds on that peer, answer with
// every counter of the pair (R9). The same number again answers again. Only an active region answers; another one records
// the number and forgets what the peer answered before.
func (s *State) Void(now time.Time, v Void) (answer Answer, ok bool) {
	p := s.pair(v.From)
	if v.Incarnation < p.Incarnation {
		return Answer{}, false
	}
	s.Moved = true
	if v.Incarnation > p.Incarnation {
		s.Settle(now)
		if s.Phase == Active {
			// The peer takes over what we sent and what we applied, so nothing between us is in flight any more.
			p.Acked.Sent = p.Out
			p.Incarnation = v.Incarnation
		} else {
			*p = Pair{Region: p.Region, Incarnation: v.Incarnation, Epoch: p.Epoch}
		}
	}
	if s.Phase != Active {
		return Answer{}, false
	}
	return Answer{
		From: v.To, To: v.From, Incarnation: s.Incarnation, Receiver: v.Incarnation, Epoch: p.Epoch,
		Base: s.Base, Out: p.Out, In: p.In, Acked: p.Acked,
	}, true
}

// Learn takes a peer's answer to the present incarnation: in := its out, out := its in, acked likewise (R10).
func (s *State) Learn(a Answer) Verdict {
	p := s.pair(a.From)
	if s.Phase != Relearning {
		return Inactive
	}
	if v := meet(a.Incarnation, max(a.Incarnation, p.Incarnation), a.Receiver, s.Incarnation); v != Applied {
		return v
	}
	p.Incarnation, p.Epoch = a.Incarnation, a.Epoch
	p.In = Received{Sent: a.Out, Refused: a.Acked.Refused}
	p.Out = a.In.Sent
	p.Acked = a.In
	p.Opened, p.Answered = true, true
	return Applied
}

// Activate ends re-learning once every one of peers has answered: share = base + Σ in − Σ out (R10). The caller vouches for
// a live lease where leases run. It returns false, and changes nothing, if an answer is missing.
func (s *State) Activate(now time.Time, peers []string) bool {
	if s.Phase != Relearning {
		return false
	}
	share := s.Base
	for _, region := range peers {
		p := s.Pair(region)
		if p == nil || !p.Answered {
			return false
		}
		share += p.In.Share - p.Out.Share
	}
	if share < 0 || share > limit.Whole {
		return false
	}
	s.Settle(now)
	s.Phase = Active
	if s.windowed() {
		s.credit(now, share-s.Share) // what was used before the loss counts for a window still
	} else {
		s.Share = share
	}
	s.clamp()
	for i := range s.Pairs {
		s.Pairs[i].Answered = false
	}
	return true
}
