package testenv

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// RedisCluster is a Redis Cluster on the loopback interface: masters with a third of the slots each, and replicas.
type RedisCluster struct {
	// Masters in slot order, Replicas of them in the same order.
	Masters, Replicas []*Redis
}

// Addrs are the addresses of all nodes.
func (c *RedisCluster) Addrs() (addrs []string) {
	for _, r := range append(c.Masters, c.Replicas...) {
		addrs = append(addrs, r.Addr)
	}
	return addrs
}

// StartRedisCluster starts three masters with a replica each and waits until every node sees all slots covered.
func StartRedisCluster(tb testing.TB) *RedisCluster {
	tb.Helper()
	const masters, slots = 3, 16384
	c := &RedisCluster{}
	ctx := context.Background()
	for i := range 2 * masters {
		r := StartRedis(tb, RedisConfig("cluster-enabled", "yes"), RedisConfig("cluster-port", strconv.Itoa(FreePort(tb))),
			RedisConfig("cluster-node-timeout", "4000"), RedisConfig("cluster-allow-replica-migration", "no"), followAtOnce)
		if i < masters {
			c.Masters = append(c.Masters, r)
		} else {
			c.Replicas = append(c.Replicas, r)
		}
	}
	run := func(r *Redis, args ...any) {
		tb.Helper()
		if err := r.Client().Do(ctx, args...).Err(); err != nil {
			tb.Fatalf("%v: %v", args, err)
		}
	}
	for i, m := range c.Masters {
		run(m, "CLUSTER", "ADDSLOTSRANGE", i*slots/masters, (i+1)*slots/masters-1)
	}
	// Nodes that meet with one epoch settle it among themselves later; a master killed meanwhile is then known to its replica by
	// an older epoch than to the others, who refuse to elect it for ever.
	for i, r := range append(c.Masters, c.Replicas...) {
		run(r, "CLUSTER", "SET-CONFIG-EPOCH", i+1)
	}
	first := c.Masters[0]
	_, port, _ := strings.Cut(first.Addr, ":")
	bus := first.Client().ConfigGet(ctx, "cluster-port").Val()["cluster-port"]
	for _, r := range append(c.Masters[1:], c.Replicas...) {
		run(r, "CLUSTER", "MEET", "127.0.0.1", port, bus)
	}
	for i, r := range c.Replicas {
		id := c.Masters[i].Client().Do(ctx, "CLUSTER", "MYID").Val()
		client := r.Client()
		Eventually(tb, startTimeout, func() error { return client.Do(ctx, "CLUSTER", "REPLICATE", id).Err() })
	}
	for _, r := range c.Replicas {
		awaitFollowing(tb, r)
	}
	for _, r := range append(c.Masters, c.Replicas...) {
		client := r.Client()
		Eventually(tb, startTimeout, func() error {
			info := client.ClusterInfo(ctx).Val()
			nodes := strings.Count(client.ClusterNodes(ctx).Val(), "\n")
			if !strings.Contains(info, "cluster_state:ok") || nodes != 2*masters {
				return fmt.Errorf("%s sees %d nodes, %.20s", r.Addr, nodes, info)
			}
			return nil
		})
	}
	return c
}

// followAtOnce spares a replica the five seconds for which a master waits for others to join.
func followAtOnce(r *Redis) { RedisConfig("repl-diskless-sync-delay", "0")(r) }

// awaitFollowing waits until a replica has its master's data.
func awaitFollowing(tb testing.TB, r *Redis) {
	tb.Helper()
	client := r.Client()
	Eventually(tb, startTimeout, func() error {
		if info := client.Info(context.Background(), "replication").Val(); !strings.Contains(info, "master_link_status:up") {
			return fmt.Errorf("replica %s does not follow yet", r.Addr)
		}
		return nil
	})
}

// RedisSentinels are three Sentinels that watch a master, named "regional", and its replica.
type RedisSentinels struct {
	Master, Replica *Redis
	Addrs           []string
}

// StartRedisSentinels starts them and waits until they know of each other and of the replica. They take a master for dead
// after half a second.
func StartRedisSentinels(tb testing.TB) *RedisSentinels {
	tb.Helper()
	suite := find(tb, "redis-sentinel", redisImage)
	ctx := context.Background()
	s := &RedisSentinels{Master: StartRedis(tb, followAtOnce), Replica: StartRedis(tb, followAtOnce)}
	_, port, _ := strings.Cut(s.Master.Addr, ":")
	if err := s.Replica.Client().Do(ctx, "REPLICAOF", "127.0.0.1", port).Err(); err != nil {
		tb.Fatal(err)
	}
	awaitFollowing(tb, s.Replica)
	for range 3 {
		own := strconv.Itoa(FreePort(tb))
		file := filepath.Join(tb.TempDir(), "sentinel.conf")
		config := "port " + own + "\nbind 127.0.0.1\nsentinel monitor regional 127.0.0.1 " + port + " 2\n" +
			"sentinel down-after-milliseconds regional 500\nsentinel failover-timeout regional 2000\n"
		if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
			tb.Fatal(err)
		}
		startOf(tb, suite, filepath.Dir(file), "redis-sentinel", file)
		s.Addrs = append(s.Addrs, "127.0.0.1:"+own)
	}
	for _, addr := range s.Addrs {
		client := (&Redis{Addr: addr, tb: tb}).Client()
		Eventually(tb, startTimeout, func() error {
			m := client.Do(ctx, "SENTINEL", "MASTER", "regional")
			fields, err := m.Slice()
			if err != nil {
				if m, ok := m.Val().(map[any]any); ok {
					return sentinelReady(fmt.Sprint(m["num-other-sentinels"]), fmt.Sprint(m["num-slaves"]))
				}
				return err
			}
			state := map[string]string{}
			for i := 0; i+1 < len(fields); i += 2 {
				state[fmt.Sprint(fields[i])] = fmt.Sprint(fields[i+1])
			}
			return sentinelReady(state["num-other-sentinels"], state["num-slaves"])
		})
	}
	return s
}

func sentinelReady(others, replicas string) error {
	if others != "2" || replicas != "1" {
		return errors.New("it knows " + others + " other sentinels and " + replicas + " replicas")
	}
	return nil
}
