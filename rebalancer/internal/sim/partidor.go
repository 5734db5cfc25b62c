package sim

import (
	"math"
	"slices"

	"partidor.dev/partidor/rebalancer/internal/plan"
	"partidor.dev/partidor/shared/limit"
	"partidor.dev/partidor/shared/rights/agent"
	"partidor.dev/partidor/shared/rights/home"
)

// Partidor is the product: rights that move by transfers, a slow loop, and the fast loop between regions.
type Partidor struct {
	// policy of the regions' agents.
	policy  agent.Policy
	w       *World
	nodes   []*node
	control *control
	shares  []limit.Share

	// tiny: the limit is consumed at its home, at first firstHome; homes is what each region knows of that.
	tiny      bool
	firstHome string
	homes     []*home.Book
}

// Start implements Strategy.
func (p *Partidor) Start(w *World) {
	p.w, p.nodes, p.homes = w, nil, nil
	p.tiny = w.scenario.Rule.Tiny(len(w.scenario.Regions))
	p.firstHome = w.scenario.split().Home()
	for range w.scenario.Regions {
		p.homes = append(p.homes, home.NewBook(1))
	}
	for i := range w.scenario.Regions {
		p.nodes = append(p.nodes, newNode(p, i))
	}
	p.shares = make([]limit.Share, len(p.nodes))
	p.control = newControl(p)
}

// Step implements Strategy.
func (p *Partidor) Step() {}

// Admit implements Strategy.
func (p *Partidor) Admit(region, n int) (admitted, waiting int) { return p.nodes[region].admit(n) }

// Shares implements Strategy.
func (p *Partidor) Shares() []limit.Share {
	for i, n := range p.nodes {
		p.shares[i] = n.state.Share
	}
	return p.shares
}

func (p *Partidor) parameters() plan.Parameters {
	parameters := p.w.scenario.Parameters
	if parameters == (plan.Parameters{}) {
		parameters = plan.DefaultParameters()
	}
	if p.w.scenario.Leases != nil {
		parameters.Floor = leaseFloor
	}
	return parameters
}

// base share of a region, and the floor that never leaves it: what its Redis records at the first move.
func (p *Partidor) base(region int) (base, floor limit.Share) {
	base = p.w.scenario.split().BaseOf(&p.w.scenario.Rule, p.w.scenario.Regions[region].Name)
	if p.tiny {
		return base, 0
	}
	return base, limit.Share(math.Ceil(float64(base) * p.parameters().Floor))
}

// node of a region by name.
func (p *Partidor) node(name string) *node {
	return p.nodes[slices.IndexFunc(p.nodes, func(n *node) bool { return n.name == name })]
}
