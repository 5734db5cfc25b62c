package admit

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"partidor.dev/partidor/shared/bucket"
	"partidor.dev/partidor/shared/fallback"
	"partidor.dev/partidor/shared/limit"
)

// Noder is a Store spread over several nodes. Node names the one that holds key, empty if there is only one or that is not
// known; it must not wait.
type Noder interface {
	Node(key limit.Key) string
}

// node is one Redis server as far as asking it goes: a fault of one leaves the others in use.
type node struct {
	*fallback.Breaker
	name string
	// failed is a limit that this node could not decide: with it the node is tried again when no request comes.
	failed atomic.Pointer[bucket.Limit]
}

// nodes are made when first met; their number is that of the servers that ever were masters.
type nodes struct {
	noder Noder // nil if there is one node
	make  func(name string) *node
	only  *node

	mu     sync.RWMutex
	byName map[string]*node
}

func newNodes(store bucket.Store, make func(name string) *node) *nodes {
	noder, _ := store.(Noder)
	return &nodes{noder: noder, make: make, only: make("")}
}

// of is the node that holds the buckets of a request: they share a slot.
func (n *nodes) of(lim *bucket.Limit) *node {
	if n.noder == nil || lim.Rule.Shards > 1 {
		return n.only
	}
	name := n.noder.Node(lim.Key)
	if name == "" {
		return n.only
	}
	n.mu.RLock()
	known := n.byName[name]
	n.mu.RUnlock()
	if known != nil {
		return known
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.byName == nil {
		n.byName = make(map[string]*node)
	}
	if n.byName[name] == nil {
		n.byName[name] = n.make(name)
	}
	return n.byName[name]
}

// all nodes met so far.
func (n *nodes) all() []*node {
	n.mu.RLock()
	defer n.mu.RUnlock()
	all := append(make([]*node, 0, len(n.byName)+1), n.only)
	for _, other := range n.byName {
		all = append(all, other)
	}
	return all
}

// away counts the nodes that are not asked, or only on trial.
func (n *nodes) away() (count int) {
	in := n.states()
	return int(in[fallback.Open] + in[fallback.HalfOpen])
}

// states counts the nodes by where their breakers stand. In a cluster the node of no name is there for what no known node
// holds.
func (n *nodes) states() (count [fallback.HalfOpen + 1]int64) {
	count[n.only.State()]++
	if n.noder == nil {
		return count
	}
	n.mu.RLock()
	defer n.mu.RUnlock()
	for _, one := range n.byName {
		count[one.State()]++
	}
	return count
}

// newNode is a node whose changes are counted, and told in the log, one line each.
func (a *Admitter) newNode(name string) *node {
	o := a.opts.Breaker
	o.OnChange = func(_ time.Time, from, to fallback.State) {
		a.metrics.changes[to].Add(1)
		switch {
		case from == fallback.Closed:
			a.opts.Logger.Warn("redis is away: this instance decides by itself", "node", name, "instances", a.opts.Instances())
		case to == fallback.Closed:
			a.opts.Logger.Info("redis is back: decisions are shared again", "node", name)
		}
	}
	return &node{Breaker: fallback.NewBreaker(o), name: name}
}

// try asks a node that is away for nothing, if a trial is due: so it is found to be back without a request that waits for it.
func (a *Admitter) try(ctx context.Context, now time.Time, n *node) {
	lim := n.failed.Load()
	if lim == nil || n.State() == fallback.Closed {
		return
	}
	permit, ok := n.Acquire(now)
	if !ok {
		return
	}
	bounded, cancel := context.WithTimeout(ctx, a.opts.Deadline)
	defer cancel()
	began := time.Now()
	_, err := a.store.Take(bounded, []bucket.Limit{*lim})
	took := time.Since(began)
	n.Done(now.Add(took), permit, took, err)
}
