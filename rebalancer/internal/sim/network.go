package sim

import (
	"container/heap"
	"math/rand/v2"
	"time"
)

// network delivers messages late, twice, out of order or never, and keeps every timer of a run. Nodes are regions in
// order, then the control plane.
type network struct {
	model  Network
	faults []Fault
	names  []string
	random *rand.Rand
	now    time.Duration
	queue  events
	order  uint64
	// messages sent so far for the one key, delivered or not. What many keys share, such as usage reports, is not counted.
	messages int
}

type event struct {
	at    time.Duration
	order uint64
	run   func()
}

// events is a heap by time, then by the order of scheduling, so that runs repeat exactly.
type events []event

func (e events) Len() int { return len(e) }
func (e events) Less(i, j int) bool {
	return e[i].at < e[j].at || e[i].at == e[j].at && e[i].order < e[j].order
}
func (e events) Swap(i, j int) { e[i], e[j] = e[j], e[i] }

// Push implements heap.Interface.
func (e *events) Push(x any) { *e = append(*e, x.(event)) }

// Pop implements heap.Interface.
func (e *events) Pop() any {
	old := *e
	last := old[len(old)-1]
	old[len(old)-1].run = nil
	*e = old[:len(old)-1]
	return last
}

func newNetwork(s *Scenario, seed uint64) *network {
	n := &network{model: s.Network, faults: s.Faults, random: rand.New(rand.NewPCG(seed, streamNetwork))}
	for i := range s.Regions {
		n.names = append(n.names, s.Regions[i].Name)
	}
	n.names = append(n.names, Control)
	return n
}

// after runs fn once d has passed.
func (n *network) after(d time.Duration, fn func()) {
	n.order++
	heap.Push(&n.queue, event{n.now + d, n.order, fn})
}

// advance runs everything due until t, in time order, and then stands at t.
func (n *network) advance(t time.Duration) {
	for len(n.queue) > 0 && n.queue[0].at <= t {
		e := heap.Pop(&n.queue).(event)
		n.now = e.at
		e.run()
	}
	n.now = t
}

// up tells whether a node is alive.
func (n *network) up(node int) bool {
	for i := range n.faults {
		f := &n.faults[i]
		if f.Kind == Down && f.active(n.now) && n.names[node] == f.Region {
			return false
		}
	}
	return true
}

// link tells whether messages pass between two nodes now.
func (n *network) link(a, b int) bool {
	for i := range n.faults {
		f := &n.faults[i]
		if f.Kind == DataLost || !f.active(n.now) {
			continue
		}
		if n.names[a] == f.Region || n.names[b] == f.Region {
			return false
		}
	}
	return true
}

// send delivers a message by running fn at the receiver, if the network lets it.
func (n *network) send(from, to int, fn func()) {
	n.messages++
	n.sendShared(from, to, fn)
}

// sendShared is send for a message that speaks of many keys at once and would go anyway.
func (n *network) sendShared(from, to int, fn func()) {
	if !n.link(from, to) || n.random.Float64() < n.model.Loss {
		return
	}
	n.deliver(from, to, fn)
	if n.model.Repeat > 0 && n.random.Float64() < n.model.Repeat {
		n.deliver(from, to, fn)
	}
}

func (n *network) deliver(from, to int, fn func()) {
	delay := time.Duration(float64(n.model.OneWay) * (0.8 + 0.4*n.random.Float64()))
	if n.model.Reorder > 0 && n.random.Float64() < n.model.Reorder {
		delay *= 3
	}
	n.after(delay, func() {
		if n.link(from, to) {
			fn()
		}
	})
}
