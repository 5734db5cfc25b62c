package sim

import (
	"time"

	"partidor.dev/partidor/rebalancer/internal/plan"
	"partidor.dev/partidor/shared/limit"
	"partidor.dev/partidor/shared/rights/lease"
)

// Scenario is one experiment: a limit, regions with traffic, a network and faults.
type Scenario struct {
	Name  string
	About string
	// Duration of virtual time, in steps of Step.
	Duration time.Duration
	Step     time.Duration
	Rule     limit.Rule
	Regions  []Region
	Network  Network
	Faults   []Fault
	// Gates the partidor strategy must pass; nil means none.
	Gates *Gates
	// Keys makes the scenario of one key out of many, for scenarios over populations of tenants; nil for a single key.
	Keys func(seed uint64) []Scenario
	// Leases, where the regions and the control plane sit in at least three failure domains; nil for none.
	Leases *lease.Terms
	// Parameters of the slow loop; the zero value means plan.DefaultParameters.
	Parameters plan.Parameters
}

// Region of a scenario.
type Region struct {
	Name    string
	Base    limit.Share
	Traffic Traffic
}

// Network between regions and control plane.
type Network struct {
	// OneWay is the mean delay; each message takes between 80 and 120 % of it, so messages overtake each other.
	OneWay time.Duration
	// Loss, Repeat and Reorder are probabilities per message: not delivered, delivered twice, delayed threefold.
	Loss, Repeat, Reorder float64
}

// Control is the name of the control plane where faults name a node.
const Control = "control"

// Fault is something that is broken for a while.
type Fault struct {
	Kind FaultKind
	// Region is a region's name, or Control.
	Region   string
	From, To time.Duration
}

// FaultKind tells what is broken.
type FaultKind uint8

const (
	// Isolated: the node works but no message reaches or leaves it.
	Isolated FaultKind = iota
	// Down: the node is dead: it admits nothing and answers nothing. It keeps its data.
	Down
	// DataLost: at From the region's Redis comes back empty. To is not used.
	DataLost
)

func (f *Fault) active(t time.Duration) bool { return t >= f.From && t < f.To }

// base split of a scenario in region order.
func (s *Scenario) base() []limit.Share {
	out := make([]limit.Share, len(s.Regions))
	for i := range s.Regions {
		out[i] = s.Regions[i].Base
	}
	return out
}

// split is the base split by name.
func (s *Scenario) split() limit.Split {
	out := limit.Split{}
	for i := range s.Regions {
		out[s.Regions[i].Name] = s.Regions[i].Base
	}
	return out
}

// rate of the limit in tokens per second, and its capacity in tokens.
func (s *Scenario) rate() float64     { return s.Rule.SliceOf(limit.Whole).Rate }
func (s *Scenario) capacity() float64 { return s.Rule.SliceOf(limit.Whole).Capacity }
