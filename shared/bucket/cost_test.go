package bucket

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"partidor.dev/partidor/shared/bucket/redisconn"
	"partidor.dev/partidor/shared/testenv"
)

// What a decision costs when many come at once: script calls, which carry several, and allocations, of which a call to Redis
// makes some two dozen and a decision in it two. The bounds leave room for the race detector, which empties pools.
func TestCostOfDecisionsTogether(t *testing.T) {
	const patience = 30 * time.Second // on a busy machine
	client, err := redisconn.New(redisconn.Options{
		Addrs: []string{testenv.StartRedis(t).Addr}, DialTimeout: patience, OpTimeout: patience,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	store := NewRedis(Options{Client: client, CallTimeout: patience})
	defer store.Close()
	limits := benchLimits(256)
	const callers, each = 64, 100
	drive := func() {
		var wg sync.WaitGroup
		for c := range callers {
			wg.Go(func() {
				for i := range each {
					if _, err := store.Take(context.Background(), limits[(c*each+i)%len(limits)]); err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
		wg.Wait()
	}
	drive() // connections, pools, buckets
	calls := scriptCalls(t, client)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	drive()
	runtime.ReadMemStats(&after)
	if n := float64(scriptCalls(t, client)-calls) / (callers * each); n > 0.5 {
		t.Errorf("%.2f script calls per decision, at most 0.5", n)
	}
	if n := float64(after.Mallocs-before.Mallocs) / (callers * each); n > 10 {
		t.Errorf("%.1f allocations per decision, at most 10", n)
	}
}

// scriptCalls is how many script calls the server has run.
func scriptCalls(t *testing.T, client redis.UniversalClient) (calls int) {
	t.Helper()
	info, err := client.Info(t.Context(), "commandstats").Result()
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(info) {
		var n int
		if name, rest, _ := strings.Cut(line, ":"); strings.HasPrefix(name, "cmdstat_eval") {
			if _, err := fmt.Sscanf(rest, "calls=%d", &n); err != nil {
				t.Fatal(err)
			}
			calls += n
		}
	}
	return calls
}
