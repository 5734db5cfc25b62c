//go:build chaos

package e2e

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"partidor.dev/partidor/deploy/internal/wan"
	"partidor.dev/partidor/shared/testenv"
)

// fault is something that fails for a while and is then mended.
type fault struct {
	name string
	// lasts at least so long.
	lasts time.Duration
	once  bool
	begin func(*testing.T)
	end   func(*testing.T)
}

// event is one step of a schedule.
type event struct {
	at   time.Duration // since the start of the traffic
	name string
	do   func(*testing.T)
}

const (
	briefly = 2500 * time.Millisecond
	// beyondLease is longer than any lease that a process may hold while it is paused.
	beyondLease = 5 * time.Second
	// beyondElection is longer than a Redis Cluster takes to replace a master.
	beyondElection = 7 * time.Second
)

// schedule puts faults in the order that the seed decides, in lanes that go on side by side: within a lane a fault is mended
// before the next begins. Each happens at least once, and again until length has passed.
func schedule(seed uint64, length time.Duration, lanes [][]fault) (events []event) {
	rng := rand.New(rand.NewPCG(seed, 5))
	for _, lane := range lanes {
		at := 3 * time.Second
		for round := 0; round == 0 || at < length; round++ {
			for _, i := range rng.Perm(len(lane)) {
				f := lane[i]
				if round > 0 && (f.once || at >= length) {
					continue
				}
				at += 300*time.Millisecond + time.Duration(rng.Int64N(int64(time.Second)))
				events = append(events, event{at, f.name, f.begin})
				at += f.lasts + time.Duration(rng.Int64N(int64(time.Second)))
				events = append(events, event{at, f.name + ", mended", f.end})
			}
		}
	}
	slices.SortStableFunc(events, func(a, b event) int { return int(a.at - b.at) })
	return events
}

// faults are those of links and of the control plane, and those of regions.
func (w *world) faults(t *testing.T) [][]fault {
	replica := w.postgres.Server.Replica(t)
	return [][]fault{
		{
			w.silence("us cut off from everything", true, "us", "eu", "ap", control),
			w.silence("ap cut off from the control plane", true, "ap", control),
			w.silence("what us says does not reach eu", false, "us", "eu"),
			w.natsDown("ap"),
			w.rebalancerDown(),
			{
				name: "the rebalancer is paused", lasts: beyondLease,
				begin: func(*testing.T) { w.rebalancer.Pause() }, end: func(*testing.T) { w.rebalancer.Resume() },
			},
			{name: "PostgreSQL fails over", once: true, begin: func(t *testing.T) { w.failOver(t, replica) }, end: func(*testing.T) {}},
		},
		{
			w.gatewayDown("eu", 0),
			{
				name: "the gateway of us is paused", lasts: beyondLease,
				begin: func(*testing.T) { w.regions["us"].gateway(0).Pause() }, end: func(*testing.T) { w.regions["us"].gateway(0).Resume() },
			},
			{
				name: "the Redis of eu, which keeps its data, is killed", lasts: briefly,
				begin: func(*testing.T) { w.regions["eu"].redis.Kill() }, end: func(*testing.T) { w.regions["eu"].redis.Restart() },
			},
			{
				name: "the Redis of us, which forgets, is killed", lasts: briefly,
				begin: func(*testing.T) { w.regions["us"].redis.Kill() }, end: func(*testing.T) { w.regions["us"].redis.Restart() },
			},
			w.masterDown(),
		},
	}
}

// silence lets nothing pass from one place to others, and back if both; a place that is cut off from the control plane does not
// reach PostgreSQL either.
func (w *world) silence(name string, both bool, place string, others ...string) fault {
	each := func(t *testing.T, do func(*wan.Link, wan.Direction) error) {
		ways := w.between(place, others...)
		if both && slices.Contains(others, control) {
			ways[w.ledgers[place]] = wan.Forth
		}
		for l, out := range ways {
			for _, d := range []wan.Direction{wan.Forth, wan.Back} {
				if d != out && !both {
					continue
				}
				if err := do(l, d); err != nil {
					t.Errorf("%s: %v", name, err)
				}
			}
		}
	}
	return fault{
		name: name, lasts: briefly,
		begin: func(t *testing.T) { each(t, (*wan.Link).Stall) }, end: func(t *testing.T) { each(t, (*wan.Link).Flow) },
	}
}

func (w *world) natsDown(place string) fault {
	return fault{
		name: "the NATS server of " + place + " is killed", lasts: briefly,
		begin: func(*testing.T) { w.servers[place].Kill() }, end: func(t *testing.T) { w.startBroker(t, place) },
	}
}

// rebalancerDown kills the rebalancer in the middle of a cycle that it was just asked for.
func (w *world) rebalancerDown() fault {
	return fault{
		name: "the rebalancer is killed in mid-cycle", lasts: briefly,
		begin: func(t *testing.T) {
			var at struct{ Listen string }
			w.rebalancer.AwaitLine(patient, says("rebalancer started", &at))
			resp, err := http.Post("http://"+at.Listen+"/v1/rebalance/run", "application/json", strings.NewReader("{}"))
			if err == nil {
				resp.Body.Close()
			}
			if err != nil || resp.StatusCode >= 300 {
				t.Logf("no cycle was asked for: %v %v", resp, err) // the database may be away
			}
			w.rebalancer.Kill()
		},
		end: w.startRebalancer,
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

// masterDown kills a master of ap's cluster, one after the other; its replica takes its place, and it comes back as a replica.
func (w *world) masterDown() fault {
	c := w.regions["ap"].cluster
	n := -1
	return fault{
		name: "a master of the Redis of ap is killed", lasts: beyondElection,
		begin: func(*testing.T) {
			n = (n + 1) % len(c.Masters)
			c.Masters[n].Kill()
			c.Masters[n], c.Replicas[n] = c.Replicas[n], c.Masters[n]
		},
		end: func(*testing.T) { c.Replicas[n].Restart() },
	}
}

// failOver kills PostgreSQL, and its replica takes its place.
func (w *world) failOver(t *testing.T, replica *testenv.PostgresServer) {
	t.Helper()
	w.postgres.Server.Kill()
	replica.Promote(t)
	for _, l := range w.ledgers {
		if err := l.Turn(fmt.Sprintf("127.0.0.1:%d", replica.Port)); err != nil {
			t.Error(err)
		}
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

// replace puts a new process in the i-th place.
func (r *region) replace(i int, g *gateway) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.gateways[i] = g
}
