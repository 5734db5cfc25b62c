//go:build chaos

package e2e

import (
	"flag"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"partidor.dev/partidor/shared/testenv"
)

var (
	chaosSeed = flag.Uint64("chaos-seed", 1, "seed of TestChaos's schedule and traffic")
	chaosFor  = flag.Duration("chaos-for", 0, "how long TestChaos goes on; by default until each fault has happened once")
)

const (
	// beyondLease is longer than the lease of a rebalancer.
	beyondLease = 5 * time.Second
	// beyondElection is longer than a Redis Cluster takes to replace a master.
	beyondElection = 7 * time.Second
)

// TestChaos is TestFaults with everything that may fail, for as long as you like.
func TestChaos(t *testing.T) {
	w := faultyWorld(t)
	replica := w.postgres.Server.Replica(t)
	w.endure(t, *chaosSeed, *chaosFor, [][]fault{
		{
			w.cutOff("us"),
			w.silence("eu cut off from everything for a moment", true, "eu", "us", "ap", control),
			w.silence("ap cut off from the control plane", true, "ap", control),
			w.silence("what us says does not reach eu", false, "us", "eu"),
			w.natsDown("ap"),
			w.rebalancerDown(),
			w.rebalancerPaused(),
			{name: "PostgreSQL fails over", once: true, begin: func(t *testing.T) { w.failOver(t, replica) }, end: func(*testing.T) {}},
		},
		{
			w.gatewayDown("eu", 0),
			w.gatewayPaused("us", 0, beyondRegion),
			w.redisDown("eu"),
			w.redisDown("us"),
			w.masterDown("ap"),
		},
		{w.gatewayPaused("eu", 1, beyondRegion)},
	})
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

// failOver kills PostgreSQL, and its replica takes its place.
func (w *world) failOver(t *testing.T, replica *testenv.PostgresServer) {
	t.Helper()
	w.postgres.Server.Kill()
	replica.Promote(t)
	for _, l := range w.ledgers {
		l.Turn(fmt.Sprintf("127.0.0.1:%d", replica.Port))
	}
}

func (w *world) rebalancerPaused() fault {
	return fault{
		name: "the rebalancer is paused past its lease", lasts: beyondLease,
		begin: func(*testing.T) { w.rebalancer.Pause() }, end: func(*testing.T) { w.rebalancer.Resume() },
	}
}

// masterDown kills a master of a region's cluster, one after the other; its replica takes its place, and it comes back as a replica.
func (w *world) masterDown(region string) fault {
	c := w.regions[region].cluster
	n := -1
	return fault{
		name: "a master of the Redis of " + region + " is killed", lasts: beyondElection,
		begin: func(*testing.T) {
			n = (n + 1) % len(c.Masters)
			c.Masters[n].Kill()
			c.Masters[n], c.Replicas[n] = c.Replicas[n], c.Masters[n]
		},
		end: func(*testing.T) { c.Replicas[n].Restart() },
	}
}
