package rights

import (
	"slices"

	"partidor.dev/partidor/shared/limit"
)

// Pending is what a region says instead of an Answer while it re-learns the key itself: it has voided the asker's former lives,
// and counts what is its own without the asker.
type Pending struct {
	From string
	// Incarnation is the sender's, Receiver the asker's number that it has voided all lower ones of.
	Incarnation, Receiver int64
	// Account is the sender's share by all that have answered it: base + Σ in − Σ out. Floor is its own.
	Account, Floor limit.Share
	// Missing are the regions that have not answered the sender.
	Missing []string
}

// Account is what the region's share is by the peers that have answered it. It is final once all have.
func (s *State) Account() limit.Share {
	share := s.Base
	for i := range s.Pairs {
		if p := &s.Pairs[i]; p.Answered {
			share += p.In.Share - p.Out.Share
		}
	}
	return share
}

// Decide sets the amounts between regions that have all forgotten them (R12): the first of those regions by name decides, and
// the others learn it from its answers once it is active. It returns what the region (own) is to learn in place of the answers of
// pending, which must be every region that has not answered it; ok is false while it is not to decide.
//
// The amounts are as near to nothing as leaves every one of them its floor. Two things make that one decision for both ends of a
// pair: only one end takes it, in the one step that makes it active; and it is taken under two incarnations of which each end has
// voided what came before, so that no answer of a former life is learned beside it. Learning compares both.
func (s *State) Decide(own string, pending []Pending) (answers []Answer, ok bool) {
	if s.Phase != Relearning || len(pending) == 0 {
		return nil, false
	}
	lack, next := limit.Share(0), 0
	for i := range pending {
		p := &pending[i]
		if own > p.From || p.Receiver != s.Incarnation {
			return nil, false
		}
		for _, region := range p.Missing {
			if region != own && !slices.ContainsFunc(pending, func(q Pending) bool { return q.From == region }) {
				return nil, false // its account is not final: a region that has answered here has yet to answer it
			}
		}
		lack += p.Floor - p.Account
		if p.From < pending[next].From {
			next = i
		}
	}
	account := s.Account()
	given := account - max(s.Floor, min(account, account-lack))
	for i := range pending {
		p := &pending[i]
		a := Answer{From: p.From, To: own, Incarnation: p.Incarnation, Receiver: s.Incarnation, Epoch: FirstEpoch}
		if i == next { // who decides after this region, and passes on what is others'
			a.In.Share = max(given, 0)
			a.Out.Share = max(-given, 0)
			a.Acked.Share = a.Out.Share
		}
		answers = append(answers, a)
	}
	return answers, true
}
