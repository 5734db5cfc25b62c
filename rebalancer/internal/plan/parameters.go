package plan

import (
	"errors"
	"fmt"
	"math"
	"time"

	"partidor.dev/partidor/shared/limit"
)

// Parameters tune the slow loop. They live in the ledger and change at run time; DefaultParameters is the start.
type Parameters struct {
	// Cycle is the time between two plans.
	Cycle time.Duration
	// Floor is the part of its base share that a region always keeps, 0 to 1, unless the region states a floor itself.
	Floor float64
	// Deadband: a key whose every region is nearer to its target than this is left alone.
	Deadband limit.Share
	// Step is the most that one region's share changes in one cycle.
	Step limit.Share
	// Headroom is how many standard deviations of one second's Poisson arrivals a claim adds to its demand.
	Headroom float64
	// SpareByNeed is the part of the unclaimed limit that follows the claims; the rest follows the base split. 0 to 1.
	SpareByNeed float64
	// MeanHalfLife and PeakHalfLife say how fast the mean follows the load and how fast a peak is forgotten.
	MeanHalfLife time.Duration
	PeakHalfLife time.Duration
	// PeakWeight is the part of a held peak that counts as demand, 0 to 1.
	PeakWeight float64
	// EarlyAfter is the shortest time between two plans when keys are refused while others idle.
	EarlyAfter time.Duration
}

// DefaultParameters are the values that the simulator's gates were measured with.
func DefaultParameters() Parameters {
	return Parameters{
		Cycle:        2 * time.Minute,
		Floor:        0.05,
		Deadband:     20_000,
		Step:         400_000,
		Headroom:     2,
		SpareByNeed:  0.7,
		MeanHalfLife: 10 * time.Second,
		PeakHalfLife: 60 * time.Second,
		PeakWeight:   0.8,
		EarlyAfter:   10 * time.Second,
	}
}

// Bounds of the cycle.
const (
	MinCycle = 10 * time.Second
	MaxCycle = time.Hour
)

// Validate reports every parameter outside its bounds, by the name it has in the ledger.
func (p Parameters) Validate() error {
	var errs []error
	fraction := func(name string, v float64) {
		if math.IsNaN(v) || v < 0 || v > 1 {
			errs = append(errs, fmt.Errorf("%s: %v, must be from 0 to 1", name, v))
		}
	}
	duration := func(name string, v, lo, hi time.Duration) {
		if v < lo || v > hi {
			errs = append(errs, fmt.Errorf("%s: %v, must be from %v to %v", name, v, lo, hi))
		}
	}
	duration("cycle", p.Cycle, MinCycle, MaxCycle)
	duration("early_after", p.EarlyAfter, time.Second, MaxCycle)
	duration("mean_half_life", p.MeanHalfLife, time.Second, MaxCycle)
	duration("peak_half_life", p.PeakHalfLife, time.Second, 24*time.Hour)
	fraction("floor", p.Floor)
	fraction("spare_by_need", p.SpareByNeed)
	fraction("peak_weight", p.PeakWeight)
	if math.IsNaN(p.Headroom) || p.Headroom < 0 || p.Headroom > 10 {
		errs = append(errs, fmt.Errorf("headroom: %v, must be from 0 to 10", p.Headroom))
	}
	if p.Deadband < 0 || p.Deadband > limit.Whole/2 {
		errs = append(errs, fmt.Errorf("deadband: %d, must be from 0 to %d", p.Deadband, limit.Whole/2))
	}
	if p.Step < 1 || p.Step > limit.Whole {
		errs = append(errs, fmt.Errorf("step: %d, must be from 1 to %d", p.Step, limit.Whole))
	}
	return errors.Join(errs...)
}
