package bucket

import (
	"context"
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"partidor.dev/partidor/shared/limit"
	"partidor.dev/partidor/shared/testenv"
)

// A Redis that is reading its data in, as after a restart or for a first copy of a master's, refuses to decide: nothing is charged
// or repeated, no connection is given up, and decisions come back by themselves. (issue: LOADING)
func TestRedisThatIsLoading(t *testing.T) {
	ctx := t.Context()
	master := testenv.StartRedis(t, testenv.RedisConfig("repl-diskless-sync-delay", "0"))
	pipe := master.Client().Pipeline()
	for i := range 2000 {
		pipe.Set(ctx, fmt.Sprint("filler-", i), fmt.Sprintf("%0100d", i), 0)
	}
	if _, err := pipe.Exec(ctx); err != nil {
		t.Fatal(err)
	}
	// Each key takes a millisecond to load, and commands are answered in between.
	server, s := startStore(t, testenv.RedisConfig("key-load-delay", "1000"), testenv.RedisConfig("loading-process-events-interval-bytes", "1024"))
	limits := one(&limit.Rule{Capacity: 100, Refill: 1, PeriodSeconds: 36000}, 1)
	mustTake(t, s, limits)
	host, port, err := net.SplitHostPort(master.Addr)
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Client().Do(ctx, "REPLICAOF", host, port).Err(); err != nil {
		t.Fatal(err)
	}
	refusals, first, last := 0, uint32(0), uint32(0) // connections made by then
	testenv.Eventually(t, time.Minute, func() error {
		within, cancel := context.WithTimeout(ctx, 10*time.Second)
		defer cancel()
		_, err := s.Take(within, limits)
		switch {
		case redis.HasErrorPrefix(err, "LOADING") && Untouched(err):
			refusals++
			if last = s.opts.Client.PoolStats().Misses; refusals == 1 {
				first = last
			}
		case redis.HasErrorPrefix(err, "READONLY") && Untouched(err) && refusals > 0:
			return nil // it has loaded
		case err != nil && !redis.HasErrorPrefix(err, "READONLY"):
			t.Fatalf("neither loading nor a replica: %v", err)
		}
		return fmt.Errorf("%d refusals while loading, then %w", refusals, err)
	})
	if refusals < 3 || last != first {
		t.Errorf("%d refusals while loading, %d connections made anew meanwhile, want several and none", refusals, last-first)
	}
	if err := server.Client().Do(ctx, "REPLICAOF", "NO", "ONE").Err(); err != nil {
		t.Fatal(err)
	}
	if d := mustTake(t, s, limits); d.Remaining != 99 {
		t.Errorf("remaining %d of the master's data, which has no such bucket, want 99: nothing was charged meanwhile", d.Remaining)
	}
}
