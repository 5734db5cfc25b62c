package plan

import (
	"math"
	"time"

	"partidor.dev/partidor/shared/limit"
)

// Region is one region of the deployment. Everything per region in this package is a slice in the order of Input.Regions.
type Region struct {
	Name string
	// Base is the region's share of the base split.
	Base limit.Share
	// Floor is the lowest share the region keeps of any key; 0 means Parameters.Floor of Base.
	Floor limit.Share
	// Drained regions get nothing: their target is 0 and their shares move to the others.
	Drained bool
}

// Demand is what is known of one key.
type Demand struct {
	Key limit.Key
	// Rule in force for the key. Keys without a rule, blocked, unlimited or sharded are not planned.
	Rule *limit.Rule
	// Loads, one per region.
	Loads []Load
	// Last is the split the ledger last recorded as target, nil for a key that has never been moved.
	Last []limit.Share
	// Pins fixes the share of regions by an operator's word; nil or Unpinned where free.
	Pins []limit.Share
}

// Unpinned in Demand.Pins leaves a region to the plan.
const Unpinned limit.Share = -1

// Load is one region's demand for one key. Rates are in tokens per second.
type Load struct {
	// Known is false while the region is silent: its numbers say nothing and it keeps its share.
	Known bool
	// Share is the share in force as last reported, 0 if none was.
	Share limit.Share
	// Mean and Peak are the smoothed offered load and its faded peak.
	Mean float64
	Peak float64
	// Usual is the offered load smoothed over many minutes, by which a tiny limit's home is chosen.
	Usual float64
	// Offered and Refused are of the latest window, for early cycles and for people.
	Offered float64
	Refused float64
}

// Estimate follows an offered load: exponentially weighted means, a quick and a slow one, and a peak that is held and fades.
// The zero value has seen nothing; its first window sets mean and peak, so that a restart does not begin at zero.
type Estimate struct {
	Mean  float64
	Peak  float64
	Usual float64
	seen  bool
}

// Observe takes in a window of the given length in which the load was rate on average.
func (e *Estimate) Observe(rate float64, window time.Duration, p Parameters) {
	if !(rate >= 0) || math.IsInf(rate, 1) || window <= 0 {
		return
	}
	if !e.seen {
		e.Mean, e.Peak, e.seen = rate, rate, true
		e.Usual = rate * (1 - halved(window, usualHalfLife)) // a single window proves nothing of the usual
		return
	}
	keep := halved(window, p.MeanHalfLife)
	e.Mean = rate + (e.Mean-rate)*keep
	e.Peak = max(e.Mean, e.Peak*halved(window, p.PeakHalfLife))
	e.Usual = rate + (e.Usual-rate)*halved(window, usualHalfLife)
	if e.Mean < negligible {
		e.Mean = 0
	}
	if e.Peak < negligible {
		e.Peak = 0
	}
}

// Seen tells whether the estimate rests on at least one window.
func (e *Estimate) Seen() bool { return e.seen }

// usualHalfLife is long enough for a few requests a minute to tell two regions apart.
const usualHalfLife = 10 * time.Minute

// negligible is a rate, in tokens per second, of about one token a year: below it a faded load is no load.
const negligible = 1e-8

func halved(d, halfLife time.Duration) float64 {
	return math.Exp2(-float64(d) / float64(max(halfLife, time.Millisecond)))
}

// demand of a region in tokens per second: its mean, or what is left of its peak.
func (l *Load) demand(p *Parameters) float64 {
	d := max(l.Mean, p.PeakWeight*l.Peak)
	if !(d > 0) || math.IsInf(d, 1) {
		return 0
	}
	return d
}

// claim is what a region asks of a limit of rate tokens per second: its demand with headroom for the ups and downs of
// arrivals, never more than the limit itself. That cap is what keeps a retry storm from winning the world.
func (l *Load) claim(p *Parameters, rate float64) float64 {
	d := min(l.demand(p), rate)
	return min(d+p.Headroom*math.Sqrt(d), rate)
}

// rateOf is the worldwide rate of a rule in tokens per second: refill ÷ period, or quota ÷ window.
func rateOf(r *limit.Rule) float64 {
	if r.Algorithm != limit.TokenBucket {
		return float64(r.Capacity) / float64(r.PolicyWindow())
	}
	return float64(r.Refill) / float64(r.PeriodSeconds)
}
