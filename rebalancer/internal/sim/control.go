package sim

import (
	"time"

	"partidor.dev/partidor/rebalancer/internal/collect"
	"partidor.dev/partidor/rebalancer/internal/plan"
	"partidor.dev/partidor/shared/limit"
	"partidor.dev/partidor/shared/rights/agent"
	"partidor.dev/partidor/shared/rights/lease"
	"partidor.dev/partidor/shared/wire"
)

// simKey is the one key of a run.
var simKey = limit.Key{Tenant: "tenant", Route: "route"}

// control is the simulated rebalancer: the collector's table and the planner that ship, a ledger of one split.
type control struct {
	p          *Partidor
	w          *World
	table      *collect.Table
	parameters plan.Parameters
	regions    []plan.Region
	names      []string
	last       []limit.Share
	planned    time.Duration
	cycles     int64

	// numbers of incarnations; the vote and the recoveries under way, where leases run.
	numbers  []int64
	voter    *lease.Voter
	mintings []*minting
}

func newControl(p *Partidor) *control {
	w := p.w
	c := &control{p: p, w: w, parameters: p.parameters()}
	c.table = collect.NewTable(collect.Options{Parameters: func() plan.Parameters { return c.parameters }}, func(string, int) {})
	for i := range w.scenario.Regions {
		r := &w.scenario.Regions[i]
		c.regions = append(c.regions, plan.Region{Name: r.Name, Base: r.Base})
		c.names = append(c.names, r.Name)
	}
	w.every(w.control(), c.parameters.Cycle, c.parameters.Cycle, c.cycle)
	w.every(w.control(), c.parameters.EarlyAfter, c.parameters.EarlyAfter, c.early)
	c.numbers, c.mintings = make([]int64, len(c.names)), make([]*minting, len(c.names))
	for i := range c.numbers {
		c.numbers[i] = 1
	}
	if terms := w.scenario.Leases; terms != nil {
		c.voter = lease.NewVoter(Control, 0, *terms)
		w.every(w.control(), recoverEvery, recoverEvery, c.recover)
	}
	return c
}

func (c *control) usage(u *wire.Usage) {
	c.table.Usage(c.w.now(), u)
}

// early runs a cycle before its time where a region refuses while others idle.
func (c *control) early() {
	if c.w.now()-c.planned < c.parameters.EarlyAfter {
		return
	}
	for _, d := range c.table.Refused(c.w.now(), c.names) {
		d.Rule = &c.w.scenario.Rule
		if plan.Early(&d, c.parameters) {
			c.cycle()
			return
		}
	}
}

// cycle is collect, plan, commit, advise.
func (c *control) cycle() {
	c.planned = c.w.now()
	c.cycles++
	demand := c.table.Demand(c.w.now(), c.names)
	for i := range demand {
		demand[i].Rule, demand[i].Last = &c.w.scenario.Rule, c.last
	}
	res := plan.Plan(plan.Input{Now: c.w.clock(), Parameters: c.parameters, Regions: c.regions, Keys: demand, Homes: true})
	if len(res.Targets) == 0 || !res.Targets[0].Changed {
		return
	}
	c.last = res.Targets[0].Shares
	advice := make([][]agent.Advice, len(c.regions))
	for i := range res.Moves {
		m := &res.Moves[i]
		advice[m.From] = append(advice[m.From], agent.Advice{
			Key: m.Key, To: c.names[m.To], Term: 1, Cycle: c.cycles, Target: m.Target, Amount: m.Amount,
		})
	}
	for from, moves := range advice {
		if len(moves) > 0 {
			c.w.send(c.w.control(), from, func() { c.p.nodes[from].follow(moves) })
		}
	}
}
