package sim

import (
	"fmt"
	"slices"
	"time"

	"partidor.dev/partidor/shared/limit"
	"partidor.dev/partidor/shared/rights/home"
)

// The sweep plays built-in scenarios at many capacities: at none may partidor fall below the static split. They are those
// that hurt most where the capacity is small: loads that swing faster than help arrives, far regions, a load that moves away.

// capacityLadder is capacities for one rate. Bursts that last milliseconds need steps as short, so they are played for a shorter time.
type capacityLadder struct {
	step, duration time.Duration
	// perSecond is the limit's rate; the load is scaled with it.
	perSecond  int64
	capacities []int64
}

var capacityLadders = []capacityLadder{
	{10 * time.Millisecond, 10 * time.Minute, 1000, []int64{20, 40, 60, 100, 200, 500, 1500, 3000}},
	{time.Millisecond, 5 * time.Minute, 1000, []int64{2, 4, 6, 8, 10, 14}},
	{10 * time.Millisecond, 20 * time.Minute, 20, []int64{2, 4, 6, 8, 11, 14, 20, 40, 80}},
}

// Sweep is the scenarios at every capacity, named like S12/1000s/20 for 1,000/s and a capacity of 20.
func Sweep() []Scenario {
	var out []Scenario
	for _, s := range Builtin() {
		if !slices.Contains([]string{"S1a", "S3c", "S4a", "S5", "S10a", "S10b", "S12"}, s.Name) {
			continue
		}
		for _, l := range capacityLadders {
			for _, capacity := range l.capacities {
				out = append(out, l.play(s, capacity))
			}
		}
	}
	return out
}

// play is a scenario with the ladder's rate and another capacity.
func (l *capacityLadder) play(s Scenario, capacity int64) Scenario {
	scale := float64(l.perSecond) / float64(s.Rule.Refill)
	s.Regions = slices.Clone(s.Regions)
	for i := range s.Regions {
		s.Regions[i].Traffic = Scaled{s.Regions[i].Traffic, scale}
	}
	s.Name = fmt.Sprintf("%s/%ds/%d", s.Name, l.perSecond, capacity)
	s.About = fmt.Sprintf("%s: %d/s, capacity %d", s.About, l.perSecond, capacity)
	s.Duration, s.Step = min(s.Duration, l.duration), l.step
	s.Rule = limit.Rule{Capacity: capacity, Refill: l.perSecond, PeriodSeconds: 1}
	s.Gates = gate(0, 0)
	if s.Rule.Tiny(len(s.Regions)) {
		s.Gates.Messages = 0                       // each request is a message to the limit's home,
		if 2*s.Network.OneWay*6/5 >= home.Budget { // and a home from which no answer comes in time admits its own only
			s.Gates = nil
		}
	}
	return s
}
