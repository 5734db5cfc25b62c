package admit

import (
	"strconv"
	"testing"
	"time"

	"partidor.dev/partidor/shared/testenv"
)

// Decisions through the whole path to a real Redis: 128 callers, 10,000 keys. cpu-us/op is this process's time per decision.
func BenchmarkRealRedis(b *testing.B) {
	r := testenv.StartRedis(b)
	g := newGateway(b, r.Addr, 1_000_000, 1_000_000, unhurried(b, r.Addr))
	tenants := make([]string, 10_000)
	for i := range tenants {
		tenants[i] = "tenant-" + strconv.Itoa(i)
	}
	b.ReportAllocs()
	b.SetParallelism(64)
	used := cpuTime(b)
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		for i := 0; pb.Next(); i++ {
			g.Admit(b.Context(), time.Now(), Request{Tenant: tenants[(i*7919)%len(tenants)], Route: "items", Cost: 1})
		}
	})
	b.ReportMetric(float64((cpuTime(b)-used).Microseconds())/float64(b.N), "cpu-us/op")
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "decisions/s")
}
