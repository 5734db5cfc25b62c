package admit

import (
	"context"
	"strconv"
	"strings"
	"testing"
	"time"

	"partidor.dev/partidor/shared/bucket"
	"partidor.dev/partidor/shared/bucket/redisconn"
	"partidor.dev/partidor/shared/limit"
	"partidor.dev/partidor/shared/testenv"
)

// One master of a cluster is killed: its keys alone are decided locally, the others' decisions stay where they are, the log
// names the node, and its replica is used once it has taken over.
func TestOneMasterOfAClusterKilled(t *testing.T) {
	cluster := testenv.StartRedisCluster(t)
	g := newGateway(t, cluster.Masters[0].Addr, 100_000, 100_000, func(o *Options) {
		o.Store = storeAt(t, cluster.Masters[0].Addr, func(o *redisconn.Options) {
			o.Addrs, o.Cluster, o.OpTimeout = cluster.Addrs(), true, time.Second
		})
	})
	ask := func(tenant string) limit.Decision {
		return g.Admit(context.Background(), time.Now(), Request{Tenant: tenant, Route: "items", Cost: 1})
	}
	// Tenants by the node that holds them, found by asking for each of them once.
	byNode := make(map[string][]string)
	nodeOf := func(tenant string) string {
		return g.store.(*bucket.Redis).Node(limit.Key{Tenant: tenant, Route: "items"})
	}
	testenv.Eventually(t, 10*time.Second, func() error {
		clear(byNode)
		for i := range 30 {
			tenant := "t" + strconv.Itoa(i)
			ask(tenant)
			byNode[nodeOf(tenant)] = append(byNode[nodeOf(tenant)], tenant)
		}
		if len(byNode) != 3 || g.Degraded() {
			return errAway
		}
		return nil
	})
	victim := cluster.Masters[0]
	lost := byNode[victim.Addr]
	if len(lost) == 0 {
		t.Fatalf("no tenant on %s: %v", victim.Addr, byNode)
	}
	victim.Kill()
	away := func() bool { return g.nodes.away() > 0 }
	testenv.Eventually(t, 10*time.Second, func() error {
		for _, tenant := range lost {
			if d := ask(tenant); d.Outcome != limit.Allowed {
				t.Fatalf("%s: %v", tenant, d.Outcome)
			}
		}
		if !away() {
			return errAway
		}
		return nil
	})
	fallbacks, asked := 0, 0
	for node, tenants := range byNode {
		if node == victim.Addr {
			continue
		}
		for _, tenant := range tenants {
			if asked++; ask(tenant).Source != limit.SourceRedis {
				fallbacks++
			}
		}
	}
	if fallbacks > asked/4 {
		t.Errorf("%d of %d decisions for the other nodes by the fallback", fallbacks, asked)
	}
	if log := strings.Join(g.log.lines(), "\n"); !strings.Contains(log, victim.Addr) {
		t.Errorf("the log does not name the node:\n%s", log)
	}
	// The replica takes over after two seconds of silence.
	testenv.Eventually(t, 90*time.Second, func() error {
		for _, tenant := range lost {
			if ask(tenant).Source != limit.SourceRedis {
				return errAway
			}
		}
		return nil
	})
}
