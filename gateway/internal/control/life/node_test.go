package life

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"partidor.dev/partidor/shared/bucket"
	"partidor.dev/partidor/shared/bucket/redisconn"
	"partidor.dev/partidor/shared/limit"
	"partidor.dev/partidor/shared/testenv"
)

func TestFirstSlot(t *testing.T) {
	const us, other = "a1 127.0.0.1:7000@17000 myself,master - 0 0 1 connected", "b2 127.0.0.1:7001@17001 master - 0 0 2 connected 5461-10922"
	for name, c := range map[string]struct {
		nodes string
		slot  int
		ok    bool
	}{
		"a range":         {other + "\n" + us + " 10923-16383\n", 10923, true},
		"a single slot":   {us + " 7 9-11\n", 7, true},
		"none":            {us + "\n" + other + "\n", 0, false},
		"a replica":       {"a1 127.0.0.1:7000@17000 myself,slave b2 0 0 2 connected\n" + other, 0, false},
		"only arriving":   {us + " [93-<-b2]\n", 0, false},
		"above the range": {us + " 16384-20000\n", 0, false},
	} {
		if slot, ok := firstSlot(c.nodes); ok != c.ok || ok && slot != c.slot {
			t.Errorf("%s: slot %d %v", name, slot, ok)
		}
	}
	for _, slot := range []int{0, 5461, 16383} {
		if got := bucket.Slot(tagOf(slot)); got != slot {
			t.Errorf("tag of %d falls into %d", slot, got)
		}
	}
}

// tenantOf finds a tenant whose bucket the n-th master of a fresh cluster keeps.
func tenantOf(n int) string {
	for i := 0; ; i++ {
		tenant := fmt.Sprintf("t%d", i)
		if bucket.Slot(limit.Key{Tenant: tenant, Route: "items"}.Redis())*3/bucket.Slots == n {
			return tenant
		}
	}
}

// TestEveryNodeOfAClusterIsWatched: any master restarts without its data, or is replaced by its replica. Its buckets refill
// nobody, while the other masters' stay as they are.
func TestEveryNodeOfAClusterIsWatched(t *testing.T) {
	cluster := testenv.StartRedisCluster(t)
	g := newGatewayOf(t, redisconn.Options{Addrs: cluster.Addrs(), Cluster: true, OpTimeout: 20 * time.Second})
	for n := range cluster.Masters {
		if d := g.take(t, tenantOf(n)); d.Remaining != 999 || g.known() != 0 {
			t.Fatalf("%d left and %d losses at the first start of node %d", d.Remaining, g.known(), n)
		}
	}
	g.lookAll(t.Context(), g.client)
	if g.known() != 0 {
		t.Fatalf("%d losses although nothing happened", g.known())
	}
	if err := cluster.Masters[1].Client().FlushAll(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	g.await(t, "a flushed node", 1)
	if d := g.take(t, tenantOf(1)); d.Remaining > 900 {
		t.Errorf("%d left at once after a node was flushed", d.Remaining)
	}
	if d := g.take(t, tenantOf(0)); d.Remaining < 990 {
		t.Errorf("%d left of a bucket that is still there", d.Remaining)
	}
	cluster.Masters[2].Kill() // its replica takes over, with or without the last writes
	g.await(t, "a promoted replica", 2)
}

// TestSentinelPromotion: the replica that Sentinel promotes has a copy of another run's data.
func TestSentinelPromotion(t *testing.T) {
	s := testenv.StartRedisSentinels(t)
	g := newGatewayOf(t, redisconn.Options{Addrs: s.Addrs, Master: "regional", OpTimeout: 20 * time.Second})
	g.take(t, "t1")
	s.Master.Kill()
	g.await(t, "a promoted replica", 1)
}

// await looks until so many losses are known, and then whether it stays so.
func (g *gateway) await(t *testing.T, what string, want int) {
	t.Helper()
	testenv.Eventually(t, 60*time.Second, func() error {
		g.lookAll(t.Context(), g.client)
		if g.known() < want {
			return errors.New(what + " has not been noticed")
		}
		return nil
	})
	for range 3 {
		g.lookAll(t.Context(), g.client)
	}
	if g.known() != want {
		t.Errorf("%s: %d losses, want %d", what, g.known(), want)
	}
}
