package bucket

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"partidor.dev/partidor/shared/bucket/redisconn"
	"partidor.dev/partidor/shared/limit"
	"partidor.dev/partidor/shared/testenv"
)

func clusterStore(tb testing.TB, c *testenv.RedisCluster) *Redis {
	client, err := redisconn.New(redisconn.Options{Addrs: c.Addrs(), Cluster: true, OpTimeout: 5 * time.Second})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = client.Close() })
	s := NewRedis(Options{Client: client, CallTimeout: 5 * time.Second})
	tb.Cleanup(s.Close)
	return s
}

// tenantLimits are three limits of one tenant, with a sliding log among them.
func tenantLimits(tenant string) []Limit {
	bucket := &limit.Rule{Capacity: 5, Refill: 1, PeriodSeconds: 3600}
	log := &limit.Rule{Capacity: 7, PeriodSeconds: 1, Algorithm: limit.SlidingWindowLog, WindowSeconds: 3600}
	var limits []Limit
	for route, rule := range map[string]*limit.Rule{"create-order": bucket, limit.TenantRoute: {Capacity: 9, Refill: 1, PeriodSeconds: 3600}, "log": log} {
		limits = append(limits, Limit{Key: limit.Key{Tenant: tenant, Route: route}, Rule: rule, Base: limit.Whole, Cost: 1})
	}
	return limits
}

// Three limits per request over many tenants on a real cluster: one slot per request, many slots per batch, and a slot that
// moves while requests go on: followed by its redirections, each take executed once. (limits G62; request-path F71)
func TestCluster(t *testing.T) {
	cluster := testenv.StartRedisCluster(t)
	s := clusterStore(t, cluster)
	ctx := context.Background()
	if warnings, err := redisconn.Check(ctx, s.opts.Client); err != nil || len(warnings) != 0 {
		t.Fatalf("check: %v, %v", warnings, err)
	}
	var wg sync.WaitGroup
	for i := range 60 {
		wg.Go(func() {
			limits := tenantLimits(fmt.Sprintf("tenant-%d", i))
			for n := range 8 {
				d, err := s.Take(ctx, limits)
				if err != nil {
					t.Error(err)
					return
				}
				if allowed := n < 5; allowed != (d.Outcome == limit.Allowed) {
					t.Errorf("tenant %d, request %d: %v", i, n, d.Outcome)
				}
			}
		})
	}
	wg.Wait()

	limits := []Limit{{Key: limit.Key{Tenant: "mover", Route: "r"}, Rule: &limit.Rule{Capacity: 100, Refill: 1, PeriodSeconds: 36000}, Base: limit.Whole, Cost: 1}}
	mustTake(t, s, limits)
	name := limits[0].Key.Redis()
	moveSlot(t, cluster, keySlot(name), []string{name}, func(when string) {
		d, err := s.Take(ctx, limits)
		if err != nil {
			t.Errorf("%s: %v", when, err)
		}
		t.Logf("%s: remaining %d", when, d.Remaining)
	})
	if d := mustTake(t, s, limits); d.Remaining != 100-6 {
		t.Errorf("remaining %d, want 94: one take each", d.Remaining)
	}
	tornSlot(t, cluster, s)
	crossSlot(t, s)
}

// Limits of two tenants in one call would need two slots: an error, nothing is charged, and requests of others go on. (issue: CROSSSLOT)
func crossSlot(t *testing.T, s *Redis) {
	var limits []Limit
	for _, tenant := range []string{"one side", "other side"} {
		limits = append(limits, Limit{
			Key: limit.Key{Tenant: tenant, Route: "r"}, Rule: &limit.Rule{Capacity: 10, Refill: 1, PeriodSeconds: 36000}, Base: limit.Whole, Cost: 1,
		})
	}
	within, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if _, err := s.Take(within, limits); !redis.HasErrorPrefix(err, "CROSSSLOT") || !Untouched(err) {
		t.Errorf("two tenants in one call: %v", err)
	}
	for i := range limits {
		if d := mustTake(t, s, limits[i:i+1]); d.Remaining != 9 {
			t.Errorf("%s: %d left, want 9", limits[i].Key, d.Remaining)
		}
	}
}

// Half of a request's buckets have moved with their slot: neither node can decide, nothing is charged or repeated, and the next
// request after the move is decided. (issue: TRYAGAIN)
func tornSlot(t *testing.T, cluster *testenv.RedisCluster, s *Redis) {
	limits := make([]Limit, 2)
	for i, route := range []string{"one", "two"} {
		limits[i] = Limit{Key: limit.Key{Tenant: "torn", Route: route}, Rule: &limit.Rule{Capacity: 100, Refill: 1, PeriodSeconds: 36000}, Base: limit.Whole, Cost: 1}
	}
	mustTake(t, s, limits)
	decided, torn := int64(1), false
	moveSlot(t, cluster, keySlot(limits[0].Key.Redis()), []string{limits[0].Key.Redis(), limits[1].Key.Redis()}, func(when string) {
		within, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		_, err := s.Take(within, limits)
		switch {
		case err == nil:
			decided++
		case redis.HasErrorPrefix(err, "TRYAGAIN") && Untouched(err):
			torn = true
		default:
			t.Errorf("%s: %v", when, err)
		}
	})
	if !torn {
		t.Error("no request has met a torn slot")
	}
	if d := mustTake(t, s, limits); d.Remaining != 100-decided-1 {
		t.Errorf("remaining %d after %d decisions", d.Remaining, decided+1)
	}
}

// moveSlot moves a slot to the next master and calls during in every state on the way.
func moveSlot(t *testing.T, c *testenv.RedisCluster, slot int, keys []string, during func(when string)) {
	key := keys[0]
	ctx := context.Background()
	i := slot * 3 / clusterSlots
	if from := c.Masters[i].Client(); from.ClusterKeySlot(ctx, key).Val() != int64(slot) {
		t.Fatalf("%s: slot %d here, %d there", key, slot, from.ClusterKeySlot(ctx, key).Val())
	}
	from, to := c.Masters[i], c.Masters[(i+1)%3]
	run := func(r *testenv.Redis, args ...any) {
		if err := r.Client().Do(ctx, args...).Err(); err != nil {
			t.Fatalf("%v: %v", args, err)
		}
	}
	id := func(r *testenv.Redis) any { return r.Client().Do(ctx, "CLUSTER", "MYID").Val() }
	during("before")
	run(to, "CLUSTER", "SETSLOT", slot, "IMPORTING", id(from))
	run(from, "CLUSTER", "SETSLOT", slot, "MIGRATING", id(to))
	during("migrating, key still there")
	host, port := "127.0.0.1", to.Addr[len("127.0.0.1:"):]
	for _, key := range keys {
		run(from, "MIGRATE", host, port, key, 0, 5000)
		during("migrating, key gone: ASK, or TRYAGAIN where another is still there")
	}
	run(to, "CLUSTER", "SETSLOT", slot, "NODE", id(to))
	run(from, "CLUSTER", "SETSLOT", slot, "NODE", id(to))
	during("moved: MOVED")
}

// A node is gone: its tenants get errors, quickly; the others' are not held up; its replica takes over.
func TestClusterNodeDies(t *testing.T) {
	cluster := testenv.StartRedisCluster(t)
	s := clusterStore(t, cluster)
	ctx := context.Background()
	rule := &limit.Rule{Capacity: 1000, Refill: 1, PeriodSeconds: 3600}
	byNode := map[int]Limit{}
	for i := 0; len(byNode) < 3; i++ {
		l := Limit{Key: limit.Key{Tenant: fmt.Sprint(i), Route: "r"}, Rule: rule, Base: limit.Whole, Cost: 1}
		byNode[keySlot(l.Key.Redis())*3/clusterSlots] = l
	}
	for _, l := range byNode {
		mustTake(t, s, []Limit{l})
	}
	cluster.Masters[1].Kill()
	for node, l := range byNode {
		ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
		_, err := s.Take(ctx, []Limit{l})
		cancel()
		if (node == 1) == (err == nil) {
			t.Errorf("node %d: %v", node, err)
		}
	}
	testenv.Eventually(t, 30*time.Second, func() error {
		ctx, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		_, err := s.Take(ctx, []Limit{byNode[1]})
		return err
	})
}

// The master dies: errors until the Sentinels have promoted its replica, then decisions again, without a restart. (limits G65)
func TestSentinelFailover(t *testing.T) {
	sentinels := testenv.StartRedisSentinels(t)
	client, err := redisconn.New(redisconn.Options{Addrs: sentinels.Addrs, Master: "regional"})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = client.Close() }()
	s := NewRedis(Options{Client: client})
	defer s.Close()
	limits := one(&limit.Rule{Capacity: 100, Refill: 1, PeriodSeconds: 3600}, 1)
	mustTake(t, s, limits)
	if n, err := client.Do(context.Background(), "WAIT", 1, 400).Int(); err != nil || n != 1 {
		t.Fatalf("replica has not followed: %d, %v", n, err)
	}
	sentinels.Master.Kill()
	var d limit.Decision
	testenv.Eventually(t, 30*time.Second, func() (err error) {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		d, err = s.Take(ctx, limits)
		return err
	})
	if d.Remaining != 98 {
		t.Errorf("remaining %d on the new master, want 98", d.Remaining)
	}
}
