package sim

import (
	"time"

	"partidor.dev/partidor/shared/bucket"
	"partidor.dev/partidor/shared/limit"
	"partidor.dev/partidor/shared/rights"
	"partidor.dev/partidor/shared/rights/agent"
	"partidor.dev/partidor/shared/rights/lease"
	"partidor.dev/partidor/shared/wire"
)

// node is one region under strategy Partidor: its gateways, its agent and its Redis taken together. What
// gateway/internal/control/exchange does over NATS and Redis happens here over the simulated network and on a
// rights.State, with the same agent.
type node struct {
	p     *Partidor
	w     *World
	index int
	name  string
	state rights.State
	agent *agent.Agent
	env   rights.Env

	// admitted and refused since the beginning, as gateways report them.
	admitted, refused uint64
	reported          uint64
	sequence          uint64
	// heard is what the agent has heard of them, and when.
	heardAdmitted, heardRefused uint64
	heardAt                     time.Duration
	// holder and voter where leases run; begun is when a new number was last asked for, 0 for not yet.
	holder *lease.Holder
	voter  *lease.Voter
	begun  time.Duration
	peers  []string
	// silentUntil: the home of a tiny limit has refused until then.
	silentUntil time.Duration
	// hotUntil: the key was seen near its limit and is told at every tick until then.
	hotUntil time.Duration
}

// Times of the gateways, as gateway/internal/control has them.
const (
	// agentTick is how often an agent lets time pass and hot keys are told to it.
	agentTick = 50 * time.Millisecond
	// coolAfter without being near its limit a key is no longer hot.
	coolAfter = 10 * time.Second
	// reportEvery is how often instances report their usage.
	reportEvery = 2 * time.Second
	// hotBelow: a key is hot once its bucket holds less than this part of the slice.
	hotBelow = 0.8
)

func newNode(p *Partidor, index int) *node {
	w := p.w
	region := &w.scenario.Regions[index]
	base, _ := p.base(index)
	n := &node{p: p, w: w, index: index, name: region.Name}
	n.env = rights.Env{Peers: map[string]int64{}, Numbers: bucket.NumbersOf(&w.scenario.Rule, base)}
	n.state = n.blank()
	for i := range w.scenario.Regions {
		if name := w.scenario.Regions[i].Name; i != index {
			n.peers = append(n.peers, name)
			n.env.Peers[name] = 1
		}
	}
	n.agent = n.newAgent()
	stagger := func(d time.Duration) time.Duration {
		return d * time.Duration(index+1) / time.Duration(len(w.scenario.Regions))
	}
	w.every(index, stagger(agentTick), agentTick, n.tick)
	w.every(index, stagger(reportEvery), reportEvery, n.report)
	losses := n.scheduleLosses()
	if w.scenario.Leases != nil {
		n.startLease(*w.scenario.Leases)
	}
	if losses || w.scenario.Leases != nil {
		w.every(index, watchEvery, watchEvery, n.watch)
		w.every(index, retryEvery, retryEvery, n.relearn)
	}
	return n
}

// admit decides n requests.
func (n *node) admit(requests int) (admitted, waiting int) {
	n.guard()
	if n.p.tiny {
		return 0, n.askHome(requests)
	}
	got := takeUpTo(&n.state, n.w.clock(), requests)
	n.admitted += uint64(got)
	n.refused += uint64(requests - got)
	if got < requests || n.state.Tokens < hotBelow*n.w.scenario.Rule.SliceOf(n.state.Share).Capacity {
		n.hotUntil = n.w.now() + coolAfter
	}
	return got, 0
}

// tick tells the agent what instances count, while the key is hot, and lets time pass.
func (n *node) tick() {
	if n.w.now() < n.hotUntil {
		n.hear()
	}
	n.agent.Tick(n.w.clock())
	n.act()
}

// hear lets the agent know what was counted since the last time.
func (n *node) hear() {
	elapsed := n.w.now() - n.heardAt
	if elapsed <= 0 {
		return
	}
	refused := float64(n.refused - n.heardRefused)
	offered := float64(n.admitted-n.heardAdmitted) + refused
	n.heardAdmitted, n.heardRefused, n.heardAt = n.admitted, n.refused, n.w.now()
	n.agent.Observe(n.w.clock(), simKey, offered/elapsed.Seconds(), refused)
}

// act does what the agent wants done, until it wants nothing more.
func (n *node) act() {
	for {
		out := n.agent.Drain()
		for _, m := range out.Rows {
			to := n.p.node(m.Row.To)
			n.w.send(n.index, to.index, func() { to.agent.HearRow(to.w.clock(), m); to.act() })
		}
		for _, m := range out.Acks {
			to := n.p.node(m.Ack.To)
			n.w.send(n.index, to.index, func() { to.agent.HearAck(to.w.clock(), m); to.act() })
		}
		for _, m := range out.Asks {
			to := n.p.node(m.To)
			n.w.send(n.index, to.index, func() { to.agent.HearAsk(to.w.clock(), m); to.act() })
		}
		if len(out.Steps) == 0 {
			return
		}
		n.guard()
		for i := range out.Steps {
			n.env.Now = n.w.clock()
			report := n.state.Do(n.env, out.Steps[i])
			if out.Steps[i].Op == rights.OpGive {
				n.w.moved += limit.Share(report.Amount)
			}
			n.agent.Reported(n.w.clock(), out.Steps[i], report)
		}
	}
}

// report tells the control plane, and the region's own agent, what its instances have counted.
func (n *node) report() {
	n.hear()
	n.sequence++
	u := &wire.Usage{ElapsedMillis: n.w.now().Milliseconds()}
	u.Header = wire.Header{Version: wire.Version, Region: n.name, Instance: n.name + "-1", Sequence: n.sequence, Started: 1}
	if n.admitted+n.refused != n.reported {
		n.reported = n.admitted + n.refused
		u.Keys = []wire.KeyUsage{{
			Tenant: simKey.Tenant, Route: simKey.Route, Admitted: n.admitted, Refused: n.refused, Share: n.state.Share,
		}}
	}
	n.w.network.sendShared(n.index, n.w.control(), func() { n.p.control.usage(u) })
}

// follow hands advice to the agent.
func (n *node) follow(advice []agent.Advice) {
	n.agent.Advise(n.w.clock(), advice)
	n.act()
}
