package rights

import (
	"slices"
	"strings"
	"time"

	"partidor.dev/partidor/shared/bucket"
	"partidor.dev/partidor/shared/limit"
)

// Phase tells what a region may do with a key.
type Phase uint8

const (
	// Active: the share is in force, rows flow.
	Active Phase = iota
	// Fenced: the lease is over. The floor is in force, nothing is given, lent or accepted (R13).
	Fenced
	// Relearning: a new incarnation that has not heard every peer yet. As Fenced (R11).
	Relearning
)

var phaseNames = [...]string{"active", "fenced", "relearning"}

func (p Phase) String() string {
	if int(p) < len(phaseNames) {
		return phaseNames[p]
	}
	return "unknown"
}

// ParsePhase reads what String wrote.
func ParsePhase(s string) (Phase, bool) {
	for i, name := range phaseNames {
		if name == s {
			return Phase(i), true
		}
	}
	return 0, false
}

// Milli is the unit of tokens that ride along on moved share: a thousandth of a token, so that cumulative rides are exact
// integers in every language.
const Milli = 1000

// MaxCounter bounds every cumulative counter: the largest integer a Redis script counts exactly. An operation that would
// pass it does less instead.
const MaxCounter = limit.MaxTokens

// FirstEpoch is the epoch of the first rows between two regions. Counters restart at zero only under a higher one, which
// both ends have agreed upon.
const FirstEpoch = 1

// Sent is everything a region has ever given one peer, within an epoch. It never falls.
type Sent struct {
	Share limit.Share
	// Ride in thousandths of a token: what was clipped when share left, and travels under it.
	Ride int64
	// Loan in whole tokens.
	Loan int64
}

// Received is everything a region has ever applied of one peer's Sent. It never falls.
type Received struct {
	Sent
	// Refused is the part of Loan, in whole tokens, that did not fit: the lender takes it back.
	Refused int64
}

// Pair is what a region keeps about one peer.
type Pair struct {
	Region string
	// Incarnation of the peer, as known here: lower numbers are refused.
	Incarnation int64
	// Epoch of the rows, both ways.
	Epoch int64
	// Out is what we gave the peer, In what we applied of what it gave us, Acked what we know it applied of Out.
	Out   Sent
	In    Received
	Acked Received
	// Opened: the peer has acknowledged a row of this epoch, so it knows that the key has moved.
	Opened bool
	// Answered, while re-learning: the counters above are the peer's answer to our present incarnation.
	Answered bool
}

// Pending tells whether the peer has yet to acknowledge something: its row must be sent again.
func (p *Pair) Pending() bool {
	return !p.Opened || p.Acked.Sent != p.Out
}

// State is one key in one region: its bucket and, once the key has moved, its rights. The zero value is no valid state;
// New makes one. A State is not safe for concurrent use; in production Redis runs one step at a time.
type State struct {
	Numbers  bucket.Numbers
	Revision limit.Revision
	// Level is what the bucket holds, and since when.
	bucket.Level

	// Moved: the key has had a first move anywhere, so Base is fixed and Share is no longer the base split's.
	Moved bool
	// Incarnation of this region for this key.
	Incarnation int64
	Phase       Phase
	// Base is the region's first share of the key, recorded at the first move, never edited (R15).
	Base limit.Share
	// Floor never leaves the region (R2, R3).
	Floor limit.Share
	// Share in force: the region's own while Active, the floor (or less) otherwise.
	Share limit.Share
	// Waiting is share of a window algorithm that has been received and comes into force at Due (µs since 1970): one whole
	// window after it came, when nothing that was used under the giver's share counts any more.
	Waiting limit.Share
	Due     int64
	// Pairs by region name, one for every other region once the key has moved.
	Pairs []Pair
}

// New is a key that has never moved, with a full bucket. numbers.Base is the region's base share, floor the part of it that
// never leaves the region.
func New(numbers bucket.Numbers, floor limit.Share, incarnation int64, now time.Time) State {
	s := State{
		Numbers: numbers, Incarnation: incarnation,
		Base: numbers.Base, Floor: min(floor, numbers.Base), Share: numbers.Base,
	}
	s.Level = bucket.Level{Tokens: s.Effective(), At: now.UnixMicro()}
	return s
}

// Clone is a deep copy.
func (s *State) Clone() State {
	c := *s
	c.Pairs = slices.Clone(s.Pairs)
	return c
}

// Open records that the key moves: Base and Floor are fixed and a pair exists for every peer, so that each of them is told
// (a row of zeros is a row). peers are the other regions with their incarnations as known. Opening twice adds only the
// peers that are new.
func (s *State) Open(peers map[string]int64) {
	s.Moved = true
	for region, incarnation := range peers {
		if s.Pair(region) == nil {
			s.pair(region).Incarnation = incarnation
		}
	}
}

// Pair finds the pair with a peer, nil if there is none.
func (s *State) Pair(region string) *Pair {
	i, ok := s.search(region)
	if !ok {
		return nil
	}
	return &s.Pairs[i]
}

// pair finds or makes the pair with a peer. Pointers into Pairs taken before are stale afterwards.
func (s *State) pair(region string) *Pair {
	i, ok := s.search(region)
	if !ok {
		s.Pairs = slices.Insert(s.Pairs, i, Pair{Region: region, Epoch: FirstEpoch})
	}
	return &s.Pairs[i]
}

func (s *State) search(region string) (int, bool) {
	return slices.BinarySearchFunc(s.Pairs, region, func(p Pair, r string) int { return strings.Compare(p.Region, r) })
}

// Held is the sum of loans that no acknowledgement has settled yet, in tokens: that much capacity is set aside.
func (s *State) Held() int64 {
	var held int64
	for i := range s.Pairs {
		held += s.Pairs[i].Out.Loan - s.Pairs[i].Acked.Loan
	}
	return held
}
