package snapshot_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"runtime/metrics"
	"slices"
	"testing"
	"time"

	"partidor.dev/partidor/gateway/internal/snapshot"
	"partidor.dev/partidor/shared/limit"
)

const (
	benchTenants = 100_000
	benchRoutes  = 5
)

func benchTenant(i int) string { return fmt.Sprintf("tenant-%06d", i) }
func benchRoute(i int) string  { return fmt.Sprintf("route-%d", i) }

// large is 500,000 rules: 100,000 tenants on 3 plans with 5 routes each.
func large(t testing.TB) *snapshot.Snapshot {
	return build(t, eu(t), func(b *snapshot.Builder) {
		n := int64(1)
		for i := range benchTenants {
			b.SetPlan(benchTenant(i), fmt.Sprintf("plan-%d", i%3), rev(1))
			for j := range benchRoutes {
				n++
				b.SetRule(benchTenant(i), benchRoute(j), rule(n, 100))
			}
		}
		b.SetRule("@plan-1", "*", rule(n, 50))
		b.SetRule("*", "*", rule(n, 10))
	})
}

// chunk is how many look-ups are timed together. The median over chunks says what a look-up costs also on a machine that
// others use at the same time.
const chunk = 256

// BenchmarkLookup reads the rules of 16 tenants (cached: in the processor's first caches), of 1,000 (hot: what a busy
// instance turns over) and of all at random (cold: every step misses every cache).
func BenchmarkLookup(b *testing.B) {
	s := large(b)
	var tenants []string // as the request path has them: the snapshot's own strings
	for p := range s.Plans() {
		tenants = append(tenants, p.Tenant)
	}
	rand.Shuffle(len(tenants), func(i, j int) { tenants[i], tenants[j] = tenants[j], tenants[i] })
	for _, heat := range []struct {
		name string
		n    int
	}{{"cached", 1 << 4}, {"hot", 1 << 10}, {"cold", 1 << 16}} {
		for _, c := range []struct{ name, route string }{{"own", "route-3"}, {"everybody", "elsewhere"}} {
			b.Run(heat.name+"/"+c.name, func(b *testing.B) {
				b.ReportAllocs()
				var sum limit.Share
				var chunks []float64
				i := 0
				for b.Loop() {
					begin := time.Now()
					for range chunk {
						sum += s.Lookup(tenants[i&(heat.n-1)], c.route).Base
						i++
					}
					chunks = append(chunks, float64(time.Since(begin))/chunk)
				}
				runtime.KeepAlive(sum)
				slices.Sort(chunks)
				b.ReportMetric(float64(b.Elapsed())/float64(i), "ns/look-up")
				b.ReportMetric(chunks[len(chunks)/2], "median-ns/look-up")
			})
		}
	}
}

// BenchmarkIncrement applies 1 % of 500,000 rules, spread over as many tenants.
func BenchmarkIncrement(b *testing.B) {
	s := large(b)
	n := int64(1_000_000)
	b.ReportAllocs()
	for b.Loop() {
		e := s.Edit()
		for range benchTenants * benchRoutes / 100 {
			n++
			e.SetRule(benchTenant(rand.IntN(benchTenants)), benchRoute(rand.IntN(benchRoutes)), rule(n, 200))
		}
		s = e.Build()
	}
}

// BenchmarkOneRule is what a single changed event costs.
func BenchmarkOneRule(b *testing.B) {
	s := large(b)
	n := int64(1_000_000)
	for b.Loop() {
		n++
		e := s.Edit()
		e.SetRule(benchTenant(rand.IntN(benchTenants)), benchRoute(0), rule(n, 200))
		s = e.Build()
	}
}

// BenchmarkBuild reports the time and the memory of 500,000 rules.
func BenchmarkBuild(b *testing.B) {
	for b.Loop() {
		before := heap()
		s := large(b)
		b.ReportMetric(float64(heap()-before)/1e6, "MB")
		runtime.KeepAlive(s)
	}
}

// BenchmarkPauses holds 500,000 rules and makes garbage as requests do: what the collector stops the world for, and its part of the
// processors, from runtime/metrics.
func BenchmarkPauses(b *testing.B) {
	s := large(b)
	runtime.GC()
	before := collected()
	var keep [1024][]byte
	for i := 0; b.Loop(); i++ {
		for range 1000 {
			keep[i&1023] = make([]byte, 2048)
			i++
		}
	}
	after := collected()
	runtime.KeepAlive(s)
	runtime.KeepAlive(keep)
	pauses, counts := after[0].Value.Float64Histogram(), before[0].Value.Float64Histogram().Counts
	var all, seen uint64
	for i := range pauses.Counts {
		all += pauses.Counts[i] - counts[i]
	}
	p99, most := 0.0, 0.0
	for i := range pauses.Counts {
		n := pauses.Counts[i] - counts[i]
		if seen += n; n > 0 && !math.IsInf(pauses.Buckets[i+1], 1) {
			most = pauses.Buckets[i+1]
			if p99 == 0 && seen*100 >= all*99 {
				p99 = most
			}
		}
	}
	b.ReportMetric(float64(all), "pauses")
	b.ReportMetric(p99*1e6, "p99-pause-us")
	b.ReportMetric(most*1e6, "max-pause-us")
	b.ReportMetric(100*(after[1].Value.Float64()-before[1].Value.Float64())/(after[2].Value.Float64()-before[2].Value.Float64()), "gc-cpu-%")
}

// collected is what the collector has done so far: its pauses, its processor time, and all processor time.
func collected() []metrics.Sample {
	runtime.GC() // which also brings the processor times up to date
	s := []metrics.Sample{{Name: "/sched/pauses/total/gc:seconds"}, {Name: "/cpu/classes/gc/total:cpu-seconds"}, {Name: "/cpu/classes/total:cpu-seconds"}}
	metrics.Read(s)
	return s
}

func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

func TestLookupAllocatesNothing(t *testing.T) {
	s := build(t, eu(t), func(b *snapshot.Builder) {
		b.SetPlan("shop-a", "gold", rev(2))
		b.SetRule("*", "*", rule(3, 5))
	})
	if n := testing.AllocsPerRun(100, func() {
		_ = s.Lookup("shop-a", "orders")
		_ = s.Lookup("shop-a", limit.TenantRoute)
	}); n != 0 {
		t.Errorf("%v allocations per look-up", n)
	}
}
