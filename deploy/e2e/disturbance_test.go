package e2e

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"partidor.dev/partidor/deploy/internal/wan"
)

// silence lets nothing pass from one place to others, and back if both; a place that is cut off from the control plane does not
// reach PostgreSQL either.
func (w *world) silence(name string, both bool, place string, others ...string) fault {
	each := func(do func(*wan.Link, wan.Direction)) {
		ways := w.between(place, others...)
		if both && slices.Contains(others, control) {
			ways[w.ledgers[place]] = wan.Forth
		}
		for l, out := range ways {
			for _, d := range []wan.Direction{wan.Forth, wan.Back} {
				if d == out || both {
					do(l, d)
				}
			}
		}
	}
	return fault{
		name: name, lasts: briefly,
		begin: func(*testing.T) { each((*wan.Link).Stall) }, end: func(*testing.T) { each((*wan.Link).Flow) },
	}
}

// between are the routes of one place to others, and in which direction they leave it.
func (w *world) between(name string, others ...string) map[*wan.Link]wan.Direction {
	found := map[*wan.Link]wan.Direction{}
	for _, o := range others {
		if l := w.routes[[2]string{name, o}]; l != nil {
			found[l] = wan.Forth
		} else if l := w.routes[[2]string{o, name}]; l != nil {
			found[l] = wan.Back
		}
	}
	return found
}

// cutOff is region cut off from everything for longer than its lease.
func (w *world) cutOff(region string) fault {
	others := slices.DeleteFunc(w.places(), func(p string) bool { return p == region })
	f := w.silence(region+" cut off from everything, past its lease", true, region, others...)
	f.lasts = beyondRegion
	return f
}

// remints makes a fault that costs a region its lease last until the others have minted its share anew. While a second region is
// away, or re-learns what it has lost, they never do.
func (w *world) remints(f fault) fault {
	begin, before := f.begin, 0
	f.begin = func(t *testing.T) {
		before = w.minted()
		begin(t)
	}
	f.until = func() error {
		if w.minted() == before {
			return errors.New("the region's share has not been minted anew")
		}
		return nil
	}
	return f
}

// minted is how often rebalancers have minted a region's share anew.
func (w *world) minted() (n int) {
	for _, p := range w.rebalancers {
		for _, line := range p.Lines() {
			if bytes.Contains(line, []byte("has been minted anew")) {
				n++
			}
		}
	}
	return n
}

func (w *world) gatewayPaused(region string, i int, lasts time.Duration) fault {
	r := w.regions[region]
	return fault{
		name: fmt.Sprintf("the gateway %s-%d is paused past its lease", region, i+1), lasts: lasts,
		begin: func(*testing.T) { r.gateway(i).Pause() }, end: func(*testing.T) { r.gateway(i).Resume() },
	}
}

func (w *world) gatewayDown(region string, i int) fault {
	r := w.regions[region]
	instance := fmt.Sprintf("%s-%d", region, i+1)
	return fault{
		name: "the gateway " + instance + " is killed", lasts: briefly,
		begin: func(*testing.T) { r.gateway(i).Kill() },
		end:   func(t *testing.T) { r.replace(i, w.startGateway(t, r, instance)) },
	}
}

// replace puts a new process in the i-th place.
func (r *region) replace(i int, g *gateway) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.gateways[i] = g
}

func (w *world) redisDown(region string) fault {
	r := w.regions[region]
	return fault{
		name: "the Redis of " + region + " is killed", lasts: briefly,
		begin: func(*testing.T) { r.redis.Kill() }, end: func(*testing.T) { r.redis.Restart() },
	}
}
