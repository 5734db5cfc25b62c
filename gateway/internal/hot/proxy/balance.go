package proxy

import (
	"math/rand/v2"
	"sync/atomic"

	"partidor.dev/partidor/gateway/internal/config"
)

// picker chooses among targets. skip, which may be nil, is not to be chosen unless there is no other.
type picker interface {
	pick(skip *target) *target
}

func newPicker(balance string, targets []*target) picker {
	if balance == config.BalanceLeastLoaded {
		return leastLoaded{targets}
	}
	return &inTurn{targets: targets, turns: turns(targets)}
}

// usable targets are up; while none is, all are, since a wrong health check must not be an outage.
func usable(targets []*target) func(*target) bool {
	for _, t := range targets {
		if !t.down.Load() {
			return func(t *target) bool { return !t.down.Load() }
		}
	}
	return func(*target) bool { return true }
}

// inTurn goes through a fixed order in which every target has as many turns as its weight, spread evenly.
type inTurn struct {
	targets []*target
	turns   []int
	next    atomic.Uint64
}

func (p *inTurn) pick(skip *target) *target {
	n := uint64(len(p.turns))
	if len(p.targets) == 1 {
		return take(p.targets[0])
	}
	up := usable(p.targets)
	start := p.next.Add(1)
	for i := range n {
		t := p.targets[p.turns[(start+i)%n]]
		if t != skip && up(t) && t.acquire() {
			return t
		}
	}
	if skip != nil {
		return take(skip)
	}
	return nil
}

// turns is the smooth weighted order: in each step every target earns its weight, and the richest has its turn and pays
// the sum.
func turns(targets []*target) []int {
	sum := 0
	for _, t := range targets {
		sum += t.weight
	}
	order := make([]int, 0, sum)
	earned := make([]int, len(targets))
	for range sum {
		best := 0
		for i, t := range targets {
			if earned[i] += t.weight; earned[i] > earned[best] {
				best = i
			}
		}
		earned[best] -= sum
		order = append(order, best)
	}
	return order
}

// leastLoaded takes the target with the fewest requests in flight for its weight, a random one of equals.
type leastLoaded struct{ targets []*target }

func (p leastLoaded) pick(skip *target) *target {
	up := usable(p.targets)
	var tried [16]*target
	for n := range min(len(p.targets), len(tried)) {
		var best *target
		var least float64
		offset := rand.IntN(len(p.targets))
		for i := range p.targets {
			t := p.targets[(i+offset)%len(p.targets)]
			if t == skip || !up(t) || contains(tried[:n], t) {
				continue
			}
			if load := float64(t.inFlight.Load()+1) / float64(t.weight); best == nil || load < least {
				best, least = t, load
			}
		}
		if best == nil {
			break
		}
		if best.acquire() {
			return best
		}
		tried[n] = best
	}
	if skip != nil {
		return take(skip)
	}
	return nil
}

func contains(list []*target, t *target) bool {
	for _, x := range list {
		if x == t {
			return true
		}
	}
	return false
}

func take(t *target) *target {
	if t.acquire() {
		return t
	}
	return nil
}
