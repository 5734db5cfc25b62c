package lease

import (
	"slices"
	"time"
)

// Terms of a lease, the same for everybody.
type Terms struct {
	// Lease is how long a majority's answer holds, Margin how much longer voters wait before they agree to minting. Renew is
	// how often a holder asks.
	Lease, Margin, Renew time.Duration
}

// DefaultTerms fence a region ten seconds after it was cut off, and let the others take over two seconds later.
func DefaultTerms() Terms {
	return Terms{Lease: 10 * time.Second, Margin: 2 * time.Second, Renew: time.Second}
}

// Renewal asks every voter to renew a region's lease.
type Renewal struct {
	Region string
	// Life tells one life of the holder from another; Stamp is when it was sent, on the holder's own monotonic clock.
	Life  int64
	Stamp time.Duration
}

// Answer is a renewal sent back by a voter.
type Answer struct {
	Renewal
	Voter string
}

// Holder is a region's own side. Not safe for concurrent use.
type Holder struct {
	region string
	life   int64
	terms  Terms
	// answered is the latest stamp that each other voter has answered.
	answered map[string]time.Duration
	voters   []string
}

// NewHolder holds nothing yet. voters are all voters but the region itself.
func NewHolder(region string, life int64, voters []string, terms Terms) *Holder {
	return &Holder{region: region, life: life, terms: terms, voters: slices.Clone(voters), answered: map[string]time.Duration{}}
}

// Renewal is to be sent to every voter at now.
func (h *Holder) Renewal(now time.Duration) Renewal {
	return Renewal{Region: h.region, Life: h.life, Stamp: now}
}

// Hear takes in an answer. Those to a former life, from strangers, and from the future count for nothing.
func (h *Holder) Hear(now time.Duration, a Answer) {
	if a.Region != h.region || a.Life != h.life || a.Stamp > now || !slices.Contains(h.voters, a.Voter) {
		return
	}
	if last, ok := h.answered[a.Voter]; !ok || a.Stamp > last {
		h.answered[a.Voter] = a.Stamp
	}
}

// Until is when the lease ends as things stand; ok is false if no majority has ever answered.
func (h *Holder) Until() (end time.Duration, ok bool) {
	need := majority(len(h.voters)+1) - 1 // less the region's own vote
	if need == 0 {
		return 1<<63 - 1, true
	}
	var stamps []time.Duration
	for _, s := range h.answered {
		stamps = append(stamps, s)
	}
	if len(stamps) < need {
		return 0, false
	}
	slices.Sort(stamps)
	return stamps[len(stamps)-need] + h.terms.Lease, true
}

// Live tells whether the region holds its lease at now.
func (h *Holder) Live(now time.Duration) bool {
	end, ok := h.Until()
	return ok && now < end
}

func majority(voters int) int { return voters/2 + 1 }
