package sim

import (
	"time"

	"partidor.dev/partidor/shared/limit"
	"partidor.dev/partidor/shared/rights"
	"partidor.dev/partidor/shared/rights/lease"
)

// What a region does about its lease, on lease.Holder and rights.State: renew, fence when no majority answers, and return
// under a new incarnation once one does.

const (
	// watchEvery is how often a region looks at its lease.
	watchEvery = 100 * time.Millisecond
	// recoverEvery is how often the control plane looks for regions whose leases are over.
	recoverEvery = 200 * time.Millisecond
	// leaseFloor is the floor where leases run, as a part of the base share.
	leaseFloor = 0.2
)

// startLease begins renewing.
func (n *node) startLease(terms lease.Terms) {
	voters := []string{Control}
	for _, r := range n.w.scenario.Regions {
		if r.Name != n.name {
			voters = append(voters, r.Name)
		}
	}
	n.holder = lease.NewHolder(n.name, 1, voters, terms)
	n.voter = lease.NewVoter(n.name, 0, terms)
	for _, v := range voters { // the deployment has run before; voters count from the same moment
		n.holder.Hear(0, lease.Answer{Renewal: n.holder.Renewal(0), Voter: v})
	}
	n.w.every(n.index, 0, terms.Renew, n.renew)
}

// renew asks every voter.
func (n *node) renew() {
	r := n.holder.Renewal(n.w.now())
	answer := func(v *lease.Voter, from int) func() {
		return func() {
			a := v.Answer(n.w.now(), r)
			n.w.network.sendShared(from, n.index, func() { n.holder.Hear(n.w.now(), a) })
		}
	}
	for _, other := range n.p.nodes {
		if other != n {
			n.w.network.sendShared(n.index, other.index, answer(other.voter, other.index))
		}
	}
	n.w.network.sendShared(n.index, n.w.control(), answer(n.p.control.voter, n.w.control()))
}

// guard fences a region whose lease is over. It comes before every decision and every step, so that a process that wakes
// after its lease does nothing under it.
func (n *node) guard() (live bool) {
	if n.holder == nil {
		return true
	}
	live = n.holder.Live(n.w.now())
	if n.state.Phase == rights.Active && !live {
		n.state.Fence(n.w.clock())
		n.begun = 0
	}
	return live
}

// minting is the recovery of one region by proxy: the control plane's side.
type minting struct {
	number  int64
	answers map[int]rights.Answer
	done    bool
	rows    []rights.Row
	booked  map[string]bool
}

// number is the next incarnation of a region, from the control plane's durable counter.
func (c *control) number(region int) int64 {
	c.numbers[region]++
	c.mintings[region] = nil // the region is back, or somebody else recovers it
	return c.numbers[region]
}

// recover mints what silent regions held above their floor, once enough voters agree that their leases are over.
func (c *control) recover() {
	for r := range c.p.nodes {
		if !c.voter.Agrees(c.w.now(), c.names[r]) {
			continue
		}
		m := c.mintings[r]
		if m == nil {
			number := c.number(r)
			m = &minting{number: number, answers: map[int]rights.Answer{}, booked: map[string]bool{}}
			c.mintings[r] = m
		}
		if m.done {
			c.deliver(m)
			continue
		}
		c.askAll(r, m)
	}
}

// askAll asks every other region to void the silent one, and mints when all have agreed and answered.
func (c *control) askAll(lost int, m *minting) {
	for _, other := range c.p.nodes {
		if _, answered := m.answers[other.index]; answered || other.index == lost {
			continue
		}
		v := rights.Void{From: c.names[lost], To: other.name, Incarnation: m.number}
		c.w.send(c.w.control(), other.index, func() {
			if !other.voter.Agrees(c.w.now(), v.From) {
				return
			}
			if answer, ok := other.void(v); ok {
				c.w.send(other.index, c.w.control(), func() {
					m.answers[other.index] = answer
					c.mint(lost, m)
				})
			}
		})
	}
}

// mint divides the excess among the others by what they need, as rows in the name of the silent region.
func (c *control) mint(lost int, m *minting) {
	others := len(c.p.nodes) - 1
	if m.done || len(m.answers) < others || !lease.Enough(others+2, others+1) {
		return
	}
	m.done = true
	var answers []rights.Answer
	var weights []float64
	load := c.loads()
	for i := range c.p.nodes {
		if a, ok := m.answers[i]; ok {
			answers = append(answers, a)
			weights = append(weights, load[i]+1e-9)
		}
	}
	base, floor := c.p.base(lost)
	minted := rights.Excess(base, floor, answers)
	for i, part := range limit.ApportionOf(minted, weights) {
		if part > 0 {
			m.rows = append(m.rows, rights.MintRow(answers[i], base, part))
		}
	}
	c.w.moved += minted
	c.table.ForgetShares(c.names[lost])
	c.book(lost, m.rows, answers)
	c.deliver(m)
}

// book writes into the ledger what was minted, so that plans know it.
func (c *control) book(lost int, rows []rights.Row, answers []rights.Answer) {
	if c.last == nil {
		c.last = make([]limit.Share, len(c.p.nodes))
		for i := range c.last {
			c.last[i], _ = c.p.base(i)
		}
	}
	last := append([]limit.Share(nil), c.last...)
	_, floor := c.p.base(lost)
	last[lost] = floor
	for i := range rows {
		for j := range answers {
			if answers[j].From == rows[i].To {
				last[c.p.node(rows[i].To).index] += rows[i].Sent.Share - answers[j].In.Share
			}
		}
	}
	c.last = last
}

// deliver sends minted rows until each receiver has booked its own.
func (c *control) deliver(m *minting) {
	for _, row := range m.rows {
		if m.booked[row.To] {
			continue
		}
		to := c.p.node(row.To)
		c.w.send(c.w.control(), to.index, func() {
			to.guard()
			to.env.Now = c.w.clock()
			report := to.state.Do(to.env, rights.Step{Key: simKey, Op: rights.OpApply, Peer: row.From, Row: row})
			if report.Verdict == rights.Applied {
				c.w.send(to.index, c.w.control(), func() { m.booked[row.To] = true })
			}
		})
	}
}

// loads is each region's mean demand, in tokens per second.
func (c *control) loads() []float64 {
	out := make([]float64, len(c.names))
	for _, d := range c.table.Demand(c.w.now(), c.names) {
		for i := range d.Loads {
			out[i] = d.Loads[i].Mean
		}
	}
	return out
}
