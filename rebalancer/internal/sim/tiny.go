package sim

import (
	"time"

	"partidor.dev/partidor/shared/limit"
	"partidor.dev/partidor/shared/rights/home"
)

// A node whose key is tiny and at home elsewhere sends each request there, as gateways do.

// consumeRequest is one request on its way to the home and back.
type consumeRequest struct {
	from *node
	over bool
}

// askHome sends requests to the key's home and returns how many wait for an answer. The home's own requests are held as
// those from elsewhere are.
func (n *node) askHome(requests int) (waiting int) {
	if n.w.now() < n.silentUntil {
		n.refused += uint64(requests)
		return 0
	}
	to := n
	if n.state.Share == 0 {
		to = n.p.node(n.p.homes[n.index].Home(simKey, n.p.firstHome))
	}
	for range requests {
		r := &consumeRequest{from: n}
		n.tell(to, func() { to.consume(r, home.Budget-to.trip(n)) })
		n.w.network.after(home.Budget, func() { r.finish(false) })
	}
	return requests
}

// tell runs fn at another node after a message there, or at once at this one.
func (n *node) tell(to *node, fn func()) {
	if to == n {
		fn()
		return
	}
	n.w.send(n.index, to.index, fn)
}

// trip is how long a message takes, at most: a reply that comes late is of no use and loses the token.
func (n *node) trip(to *node) time.Duration {
	if to == n {
		return 0
	}
	return n.w.scenario.Network.OneWay * 6 / 5
}

// finish settles a request once: the answer, or the end of its budget.
func (r *consumeRequest) finish(admitted bool) {
	if r.over {
		return
	}
	r.over = true
	if admitted {
		r.from.admitted++
		r.from.w.serveLater(r.from.index, 1)
		return
	}
	r.from.refused++
	r.from.w.refuseLater(1)
}

// consume takes a token for a request, or holds it, or refuses. left is what remains of the asker's budget.
func (n *node) consume(r *consumeRequest, left time.Duration) {
	asker, trip := r.from, n.trip(r.from)
	if n.state.Share == 0 {
		if to := n.handedTo(); to != "" {
			n.tell(asker, func() {
				n.p.homes[asker.index].Learn(simKey, to)
				r.finish(false)
			})
		}
		return
	}
	if n.state.Take(n.w.clock(), 1) {
		n.w.charge(1)
		n.tell(asker, func() { r.finish(true) })
		return
	}
	next := time.Duration(n.state.Slice().Wait(n.state.Tokens, 1)) * time.Microsecond
	if wait, ok := home.Hold(next, left, trip); ok {
		n.w.network.after(wait, func() { n.consume(r, left-wait) })
		return
	}
	n.tell(asker, func() {
		asker.silentUntil = max(asker.silentUntil, n.w.now()+home.Silence(next-trip, trip, home.Budget))
		r.finish(false)
	})
}

// handedTo is the peer that this region gave its share to.
func (n *node) handedTo() string {
	best, most := "", limit.Share(0)
	for i := range n.state.Pairs {
		if p := &n.state.Pairs[i]; p.Out.Share-p.In.Share > most {
			best, most = p.Region, p.Out.Share-p.In.Share
		}
	}
	return best
}
