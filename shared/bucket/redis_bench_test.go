package bucket

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"partidor.dev/partidor/shared/limit"
	"partidor.dev/partidor/shared/testenv"
)

// BenchmarkRedisTake measures decisions through the batched store: 10,000 distinct keys or one, 32 and 128 callers. Beside the
// time per decision it reports the median and the 99th percentile of a caller's wait, and this process's CPU per decision.
func BenchmarkRedisTake(b *testing.B) {
	server := testenv.StartRedis(b)
	for _, keys := range []int{10_000, 1} {
		for _, callers := range []int{32, 128} {
			b.Run(fmt.Sprintf("keys=%d/callers=%d", keys, callers), func(b *testing.B) {
				store := NewRedis(Options{Client: connect(b, server.Addr)})
				defer store.Close()
				limits := benchLimits(keys)
				benchmarkCallers(b, callers, func(ctx context.Context) error {
					_, err := store.Take(ctx, limits[rand.IntN(len(limits))])
					return err
				})
			})
		}
	}
}

// BenchmarkAutoPipelinedTake carries the same decisions through go-redis's own pipeliner, one script call each: what batching
// into script calls has to beat (ARCHITECTURE.md tells by how much it does).
func BenchmarkAutoPipelinedTake(b *testing.B) {
	server := testenv.StartRedis(b)
	for _, callers := range []int{32, 128} {
		b.Run(fmt.Sprintf("keys=10000/callers=%d", callers), func(b *testing.B) {
			client := connect(b, server.Addr).(*redis.Client)
			pipe, err := client.AsyncAutoPipeline()
			if err != nil {
				b.Fatal(err)
			}
			defer func() { _ = pipe.Close() }()
			s := newScript("")
			if err := client.ScriptLoad(b.Context(), s.source).Err(); err != nil {
				b.Fatal(err)
			}
			limits := benchLimits(10_000)
			benchmarkCallers(b, callers, func(ctx context.Context) error {
				l := limits[rand.IntN(len(limits))]
				cmd := redis.NewStringCmd(ctx, "evalsha", s.sha, 1, l[0].Key.Redis(), "0", "600000", "0", string(appendAsk(nil, &l[0], 0)))
				future := pipe.Submit(ctx, cmd)
				if err := future.WaitContext(ctx); err != nil {
					return err
				}
				_, _, err := parseReply(cmd.Val(), l, 0)
				return err
			})
		})
	}
}

func benchLimits(keys int) [][]Limit {
	rule := &limit.Rule{Capacity: 1_000_000, Refill: 1000, PeriodSeconds: 1}
	limits := make([][]Limit, keys)
	for i := range limits {
		key := limit.Key{Tenant: fmt.Sprintf("tenant-%d", i), Route: "create-order"}
		limits[i] = []Limit{{Key: key, Rule: rule, Base: 700_000, Cost: 1, Revision: limit.Revision{Epoch: 1, Number: 9}}}
	}
	return limits
}

func benchmarkCallers(b *testing.B, callers int, take func(context.Context) error) {
	var left atomic.Int64
	left.Store(int64(b.N))
	waits := make([][]time.Duration, callers)
	b.ReportAllocs()
	before := cpuTime()
	b.ResetTimer()
	var wg sync.WaitGroup
	for i := range callers {
		wg.Go(func() {
			for left.Add(-1) >= 0 {
				began := time.Now()
				if err := take(context.Background()); err != nil {
					b.Error(err)
					return
				}
				waits[i] = append(waits[i], time.Since(began))
			}
		})
	}
	wg.Wait()
	b.StopTimer()
	all := slices.Concat(waits...)
	slices.Sort(all)
	b.ReportMetric(float64(cpuTime()-before)/float64(b.N)/1e3, "client-µs/op")
	b.ReportMetric(float64(all[len(all)/2])/1e6, "p50-ms")
	b.ReportMetric(float64(all[len(all)*99/100])/1e6, "p99-ms")
}

func cpuTime() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
