package sim

import (
	"math"
	"slices"

	"partidor.dev/partidor/rebalancer/internal/plan"
	"partidor.dev/partidor/shared/limit"
	"partidor.dev/partidor/shared/rights/agent"
)

// Partidor is the product: rights that move by transfers, a slow loop, and the fast loop between regions.
type Partidor struct {
	// policy of the regions' agents.
	policy  agent.Policy
	w       *World
	nodes   []*node
	control *control
	shares  []limit.Share
}

// Start implements Strategy.
func (p *Partidor) Start(w *World) {
	p.w, p.nodes = w, nil
	for i := range w.scenario.Regions {
		p.nodes = append(p.nodes, newNode(p, i))
	}
	p.shares = make([]limit.Share, len(p.nodes))
	p.control = newControl(p)
}

// Step implements Strategy.
func (p *Partidor) Step() {}

// Admit implements Strategy.
func (p *Partidor) Admit(region, n int) (admitted, waiting int) { return p.nodes[region].admit(n), 0 }

// Shares implements Strategy.
func (p *Partidor) Shares() []limit.Share {
	for i, n := range p.nodes {
		p.shares[i] = n.state.Share
	}
	return p.shares
}

func (p *Partidor) parameters() plan.Parameters {
	if p.w.scenario.Parameters == (plan.Parameters{}) {
		return plan.DefaultParameters()
	}
	return p.w.scenario.Parameters
}

// floor of a region: what its Redis records as the share that never leaves it.
func (p *Partidor) floor(region int) limit.Share {
	return limit.Share(math.Ceil(float64(p.w.scenario.Regions[region].Base) * p.parameters().Floor))
}

// node of a region by name.
func (p *Partidor) node(name string) *node {
	return p.nodes[slices.IndexFunc(p.nodes, func(n *node) bool { return n.name == name })]
}
