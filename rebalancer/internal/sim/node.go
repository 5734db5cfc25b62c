package sim

import (
	"time"

	"partidor.dev/partidor/shared/bucket"
	"partidor.dev/partidor/shared/limit"
	"partidor.dev/partidor/shared/rights"
	"partidor.dev/partidor/shared/wire"
)

// node is one region under strategy Partidor: its gateways and Redis taken together. What gateway/internal/control/exchange
// does over NATS and Redis happens here over the simulated network, on the same rights.State.
type node struct {
	p     *Partidor
	w     *World
	index int
	name  string
	state rights.State
	// sent is when each peer's row was last sent, in region order; unsent rows are due.
	sent []time.Duration

	// admitted and refused since the beginning, as gateways report them.
	admitted, refused, reported uint64
	sequence                    uint64
	// need is what the region uses now, in tokens per second.
	need float64
	seen uint64
}

// Times of the exchange.
const (
	resendAfter   = 300 * time.Millisecond
	measureEvery  = 100 * time.Millisecond
	reportEvery   = 2 * time.Second
	needSmoothing = 0.2
)

func newNode(p *Partidor, index int) *node {
	w := p.w
	region := &w.scenario.Regions[index]
	numbers := bucket.NumbersOf(&w.scenario.Rule, region.Base)
	n := &node{p: p, w: w, index: index, name: region.Name, sent: make([]time.Duration, len(w.scenario.Regions))}
	n.state = rights.New(numbers, p.floor(index), 1, w.clock())
	stagger := func(d time.Duration) time.Duration { return d * time.Duration(index+1) / time.Duration(len(n.sent)) }
	w.every(index, stagger(measureEvery), measureEvery, n.measure)
	w.every(index, stagger(reportEvery), reportEvery, n.report)
	return n
}

// admit decides n requests.
func (n *node) admit(requests int) int {
	got := takeUpTo(&n.state, n.w.clock(), requests)
	n.admitted += uint64(got)
	n.refused += uint64(requests - got)
	return got
}

// measure follows the load and sends again what no peer has acknowledged.
func (n *node) measure() {
	rate := float64(n.admitted+n.refused-n.seen) / measureEvery.Seconds()
	n.seen = n.admitted + n.refused
	n.need += (rate - n.need) * needSmoothing
	for i := range n.state.Pairs {
		if peer := n.p.index(n.state.Pairs[i].Region); n.state.Pairs[i].Pending() && n.w.now()-n.sent[peer] >= resendAfter {
			n.ship(peer)
		}
	}
}

// report tells the control plane what the region's instances have counted.
func (n *node) report() {
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

// open records that the key moves and who the peers are.
func (n *node) open() {
	if n.state.Moved {
		return
	}
	peers := map[string]int64{}
	for _, other := range n.p.nodes {
		if other != n {
			peers[other.name] = 1
		}
	}
	n.state.Open(peers)
}

// follow does what advice says, as far as the region does not need the share itself.
func (n *node) follow(m wire.Move) {
	n.open()
	need := limit.Share(n.need / n.w.scenario.rate() * float64(limit.Whole))
	amount := min(m.Amount, n.state.Share-m.Target)
	if given := n.state.Give(n.w.clock(), m.To, amount, max(m.Target, m.Floor, need)); given > 0 {
		n.w.moved += given
		n.ship(n.p.index(m.To))
	}
}

// ship sends a peer its row.
func (n *node) ship(peer int) {
	other := n.p.nodes[peer]
	row, ok := n.state.Row(n.name, other.name)
	if !ok {
		return
	}
	n.sent[peer] = n.w.now()
	n.w.send(n.index, peer, func() { other.apply(row) })
}

// apply takes in a peer's row and acknowledges it.
func (n *node) apply(row rights.Row) {
	n.open()
	ack, verdict := n.state.Apply(n.w.clock(), row)
	if verdict != rights.Applied {
		return
	}
	giver := n.p.nodes[n.p.index(row.From)]
	n.w.send(n.index, giver.index, func() { giver.state.Acknowledge(giver.w.clock(), ack) })
}
