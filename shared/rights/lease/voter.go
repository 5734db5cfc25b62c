package lease

import "time"

// Voter is the other side: it answers renewals and remembers when. Not safe for concurrent use.
type Voter struct {
	name  string
	terms Terms
	// start counts as an answer to everybody: a voter that has lost its memory may have answered just before.
	start    time.Duration
	answered map[string]time.Duration
}

// NewVoter begins at start on its own monotonic clock.
func NewVoter(name string, start time.Duration, terms Terms) *Voter {
	return &Voter{name: name, terms: terms, start: start, answered: map[string]time.Duration{}}
}

// Answer renews, and starts the voter's own count anew. The caller sends the answer at once or not at all.
func (v *Voter) Answer(now time.Duration, r Renewal) Answer {
	v.answered[r.Region] = now
	return Answer{Renewal: r, Voter: v.name}
}

// Silence is how long the voter has not answered a region, of whatever incarnation or life.
func (v *Voter) Silence(now time.Duration, region string) time.Duration {
	last, ok := v.answered[region]
	if !ok {
		last = v.start
	}
	return now - last
}

// Agrees tells whether the region's lease has surely ended as far as this voter's answers go.
func (v *Voter) Agrees(now time.Duration, region string) bool {
	return v.Silence(now, region) > v.terms.Lease+v.terms.Margin
}

// Enough tells whether so many voters' agreement proves that a region's lease is over: those that have not agreed, the region
// itself among them, must be less than a majority. Minting needs that, and the answer of every other region besides. With
// two regions and a control plane it takes the control plane's agreement too.
func Enough(voters, agreeing int) bool { return voters-agreeing < majority(voters) }
