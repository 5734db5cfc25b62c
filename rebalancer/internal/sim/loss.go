package sim

import (
	"time"

	"partidor.dev/partidor/shared/limit"
	"partidor.dev/partidor/shared/rights"
	"partidor.dev/partidor/shared/rights/agent"
)

// A region whose Redis comes back empty: as in gateways, it is fenced to its floor with an empty bucket, takes a number from
// the control plane and learns from its peers what it held. Two regions that forget each other stay at their floors until the
// control plane decides between them, which is not played.

// retryEvery is how often unanswered questions are asked again.
const retryEvery = 500 * time.Millisecond

// scheduleLosses plans the losses of this region.
func (n *node) scheduleLosses() (any bool) {
	for _, f := range n.w.scenario.Faults {
		if f.Kind == DataLost && f.Region == n.name {
			n.w.network.after(f.From, n.lose)
			any = true
		}
	}
	return any
}

// lose empties the region's Redis. What its agent had in mind came from there.
func (n *node) lose() {
	incarnation := n.state.Incarnation
	n.state = n.blank()
	n.state.Incarnation, n.state.Phase = incarnation, rights.Fenced
	n.state.Share, n.state.Tokens = n.state.Floor, 0
	n.agent = n.newAgent()
	n.begun = 0
}

// blank is the key as a region knows it before the first move.
func (n *node) blank() rights.State {
	_, floor := n.p.base(n.index)
	return rights.New(n.env.Numbers, floor, 1, n.w.clock())
}

func (n *node) newAgent() *agent.Agent {
	return agent.New(agent.Options{
		Region: n.name, Peers: n.peers, Policy: n.p.policy, RoundTrip: 2 * n.w.scenario.Network.OneWay,
		Rule: func(limit.Key) *limit.Rule { return &n.w.scenario.Rule },
	})
}

// watch asks for a number to return under: a fenced region that holds its lease again, or one that has lost its data.
func (n *node) watch() {
	if live := n.guard(); n.state.Phase != rights.Fenced || !live || n.begun > 0 && n.w.now()-n.begun < retryEvery {
		return
	}
	n.begun = n.w.now()
	n.w.network.sendShared(n.index, n.w.control(), func() {
		number := n.p.control.number(n.index)
		n.w.network.sendShared(n.w.control(), n.index, func() {
			if n.guard() && n.state.Begin(n.w.clock(), number, false) {
				n.relearn()
			}
		})
	})
}

// relearn asks every peer that has not answered for its counters, and takes the share up again once all have.
func (n *node) relearn() {
	if n.state.Phase != rights.Relearning {
		return
	}
	if n.guard() && n.state.Activate(n.w.clock(), n.peers) {
		return
	}
	void := rights.Void{From: n.name, Incarnation: n.state.Incarnation}
	for _, other := range n.p.nodes {
		if pair := n.state.Pair(other.name); other == n || pair != nil && pair.Answered {
			continue
		}
		v := void
		v.To = other.name
		n.w.send(n.index, other.index, func() {
			if answer, ok := other.void(v); ok {
				n.w.send(other.index, n.index, func() { n.state.Learn(answer) })
			}
		})
	}
}

// void takes in that a peer lives under a higher incarnation and answers with every counter of the pair.
func (n *node) void(v rights.Void) (rights.Answer, bool) {
	n.guard()
	answer, ok := n.state.Void(n.w.clock(), v)
	n.env.Peers[v.From] = max(n.env.Peers[v.From], v.Incarnation)
	return answer, ok
}
