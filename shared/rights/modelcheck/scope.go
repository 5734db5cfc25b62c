package modelcheck

import (
	"fmt"

	"partidor.dev/partidor/shared/bucket"
	"partidor.dev/partidor/shared/limit"
)

// maxRegions bounds the worlds this package can search.
const maxRegions = 3

// Scope bounds one search. Shares are counted in units of Whole ÷ Units, which must divide evenly so that capacities,
// rates and levels stay whole tokens.
type Scope struct {
	Name string
	// Units is the number of share units; Base and Floor are each region's, in units. len(Base) is the number of regions.
	Units       int
	Base, Floor []int
	// Capacity and Rate are tokens, and tokens per tick, of one unit of share.
	Capacity, Rate int
	// NewCapacity and NewRate, if not 0, are a rule change that each region hears of at some point.
	NewCapacity, NewRate int
	// NewBase, if not nil, is a base split that comes with the rule change, in units.
	NewBase []int
	// Moves bounds the gives and loans together; MaxLoan is the largest loan, 0 for none; NoGive leaves only loans.
	Moves, MaxLoan int
	NoGive         bool
	// Shares looks at what the shares add up to only: no time passes and nothing is admitted, so that more faults fit.
	Shares bool
	// Losses and Fences bound the faults, which strike the regions in Failing. A region that lost its data uses nothing
	// until it has a new incarnation, then its floor.
	Losses, Fences int
	Failing        []int
	// Leaders is how many leaders try to mint anew what a fenced region 0 holds.
	Leaders int
	// Resumes bounds how often a fenced region 0 goes on under the same incarnation, because some voter, the control plane or
	// another region, has answered it again.
	Resumes int
	// Copies lets a failing region come back with an older copy of its tokens.
	Copies bool
	// Decide lets the first of several regions that have forgotten what lies between them set it.
	Decide bool
	// Prune forgets messages that bring nothing new to the incarnations they speak of; Trust also those of incarnations that
	// are void, which trusts the machine to refuse them.
	Prune, Trust bool
	// Broken switches off a rule that is kept around the state machine rather than in it.
	Broken Environment
	// MaxStates ends the search early; 0 means never. The result then says so.
	MaxStates int
}

func (c *Scope) regions() int { return len(c.Base) }

func (c *Scope) unit() limit.Share { return limit.Whole / limit.Share(c.Units) }

// numbers is the rule as region i sees it, before or after the change.
func (c *Scope) numbers(i int, changed bool) bucket.Numbers {
	capacity, rate := c.Capacity, c.Rate
	if changed {
		capacity, rate = c.NewCapacity, c.NewRate
	}
	rule := limit.Rule{Capacity: int64(c.Units * capacity), Refill: int64(c.Units * rate), PeriodSeconds: 1}
	base := c.Base[i]
	if changed && c.NewBase != nil {
		base = c.NewBase[i]
	}
	return bucket.NumbersOf(&rule, limit.Share(base)*c.unit())
}

func (c *Scope) floor(i int) limit.Share {
	if c.Floor == nil {
		return 0
	}
	return limit.Share(c.Floor[i]) * c.unit()
}

func (c *Scope) fails(i int) bool {
	for _, f := range c.Failing {
		if f == i {
			return true
		}
	}
	return false
}

func (c *Scope) validate() error {
	sum := 0
	for _, b := range c.Base {
		sum += b
	}
	if c.regions() < 2 || c.regions() > maxRegions || sum != c.Units || int64(limit.Whole)%int64(c.Units) != 0 {
		return fmt.Errorf("scope %s: base %v of %d units", c.Name, c.Base, c.Units)
	}
	return nil
}

// Environment names a rule that the surroundings of the machine keep: the durable counter, the lease, the leader. Searches
// with one of them broken must find a violation.
type Environment uint8

// The rules of the surroundings, and how each is broken.
const (
	Sound Environment = iota
	// AckOnReceipt acknowledges a row before the step that applies it (R6).
	AckOnReceipt
	// ReusedNumber begins again under the same incarnation (R8).
	ReusedNumber
	// OldCopy goes on with an older copy as if nothing had happened (R8).
	OldCopy
	// NoLease completes re-learning after the lease has ended again (R10).
	NoLease
	// MintEarly mints anew before the holder's lease is over (R14).
	MintEarly
	// SharedNumber lets two parties take the same number: no compare-and-set (R14).
	SharedNumber
	// MintMissing mints without one region's answer (R14).
	MintMissing
	// DecideEarly decides before the others have voided the decider's former lives (R12).
	DecideEarly
	// ResumeVoid lets a region resume by the word of a voter that knows it to be void.
	ResumeVoid
	// AgreeGranting lets a region agree to a minting although its own answer keeps the lease alive.
	AgreeGranting
	// OverlapEarly declares a rule change over while loans made before it are out (R16).
	OverlapEarly
)
