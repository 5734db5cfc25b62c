package usage_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"partidor.dev/partidor/gateway/internal/control/usage"
	"partidor.dev/partidor/shared/limit"
	"partidor.dev/partidor/shared/wire"
)

var orders = limit.Key{Tenant: "shop-a", Route: "orders"}

func report(t *usage.Table, age time.Duration) map[limit.Key]wire.KeyUsage {
	keys := make(map[limit.Key]wire.KeyUsage)
	t.Report(age, func(k wire.KeyUsage) { keys[limit.Key{Tenant: k.Tenant, Route: k.Route}] = k })
	return keys
}

func TestCountersAreCumulative(t *testing.T) {
	table := usage.NewTable(10)
	table.Count(orders, 3, true, limit.Decision{Key: orders, Source: limit.SourceRedis, Share: 700_000, Tokens: 1.5})
	table.Count(orders, 2, false, limit.Decision{Key: orders, Outcome: limit.Refused, Source: limit.SourceFallback, Share: 1})
	table.Count(orders, 1, true, limit.Decision{Key: limit.Key{Tenant: "shop-a", Route: "@tenant"}, Source: limit.SourceRedis, Share: 5})
	want := wire.KeyUsage{Tenant: "shop-a", Route: "orders", Admitted: 4, Refused: 2, Share: 700_000, Tokens: 1.5,
		Sources: []uint32{2, 0, 1}, Refusal: &wire.Refusal{Outcome: "refused", Source: "fallback", Cost: 2}}
	if d := cmp.Diff(want, report(table, time.Second)[orders]); d != "" {
		t.Error(d)
	}
}

// What is for people is said once: who decided, where that was not the store alone, and the last refusal.
func TestRecentDecisionsAreTold(t *testing.T) {
	table := usage.NewTable(10)
	store := limit.Decision{Key: orders, Source: limit.SourceRedis}
	table.Count(orders, 1, true, store)
	if got := report(table, time.Second)[orders]; got.Sources != nil || got.Refusal != nil {
		t.Errorf("a key that only the store decides: %+v", got)
	}
	tenant := limit.Key{Tenant: "shop-a", Route: limit.TenantRoute}
	table.Count(orders, 1, true, limit.Decision{Key: orders, Source: limit.SourcePrefetch})
	table.Count(orders, 5, false, limit.Decision{Key: tenant, Outcome: limit.Refused, Source: limit.SourceDeniedCache, Tokens: 0.5, RetryAfter: 1500 * time.Millisecond})
	got := report(table, 2*time.Second)[orders]
	want := &wire.Refusal{Outcome: "refused", Source: "denied-cache", Cost: 5, Tokens: 0.5, WaitMillis: 1500, Limit: limit.TenantRoute}
	if d := cmp.Diff(want, got.Refusal); d != "" || !slices.Equal(got.Sources, []uint32{0, 1, 0, 1}) {
		t.Errorf("sources %v, refusal %s", got.Sources, d)
	}
	table.Count(orders, 1, true, store)
	if got := report(table, 3*time.Second)[orders]; !slices.Equal(got.Sources, []uint32{1}) || got.Refusal != nil {
		t.Errorf("afterwards: %+v", got)
	}
	// A request that can never pass is no load, but it is told.
	for i := range 100 {
		report(table, time.Duration(4+i)*time.Second)
	}
	table.Count(orders, 900, false, limit.Decision{Key: orders, Outcome: limit.TooLarge, Source: limit.SourceRedis})
	got = report(table, 200*time.Second)[orders]
	if got.Refused != 5 || got.Refusal == nil || got.Refusal.Outcome != "too_large" || got.Refusal.Cost != 900 {
		t.Errorf("too large: %+v", got)
	}
}

// A changed key is repeated in the two reports that follow, so that a lost report is made good; then only the rolling part
// of the table mentions it.
func TestLostReportIsMadeGood(t *testing.T) {
	table := usage.NewTable(10)
	table.Count(orders, 1, true, limit.Decision{})
	mentioned := 0
	for i := range 3 {
		if _, ok := report(table, time.Duration(i+1)*time.Second)[orders]; !ok {
			t.Errorf("report %d does not mention the key", i+1)
		}
	}
	for i := range 64 {
		if _, ok := report(table, time.Duration(i+4)*time.Second)[orders]; ok {
			mentioned++
		}
	}
	if mentioned != 1 {
		t.Errorf("mentioned %d times in the 64 reports after, want once by the rolling part", mentioned)
	}
}

func TestTableIsBounded(t *testing.T) {
	table := usage.NewTable(100)
	for i := range 1000 {
		table.Count(limit.Key{Tenant: fmt.Sprint(i), Route: "orders"}, 1, true, limit.Decision{})
	}
	if table.Keys() != 100 || table.Dropped() != 900 {
		t.Errorf("%d keys, %d dropped; want 100 and 900", table.Keys(), table.Dropped())
	}
	// Idle keys make room; one that comes back begins at zero.
	report(table, time.Second)
	for i := range 70 {
		report(table, 15*time.Minute+time.Duration(i)*time.Second)
	}
	if table.Keys() != 0 {
		t.Errorf("%d keys after a quarter of an hour without requests, want none", table.Keys())
	}
	key := limit.Key{Tenant: "0", Route: "orders"}
	table.Count(key, 1, true, limit.Decision{})
	if got := report(table, 20*time.Minute)[key].Admitted; got != 1 {
		t.Errorf("admitted %d, want 1", got)
	}
}

func TestCountingIsExactUnderConcurrency(t *testing.T) {
	table := usage.NewTable(1000)
	const workers, each = 16, 2000
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for i := range each {
				table.Count(limit.Key{Tenant: fmt.Sprint(i % 50), Route: "orders"}, 1, i%2 == 0, limit.Decision{})
			}
		})
	}
	reports := make(chan struct{})
	go func() {
		defer close(reports)
		for i := range 50 {
			report(table, time.Duration(i)*time.Second)
		}
	}()
	wg.Wait()
	<-reports
	sum := uint64(0)
	for range 64 { // every shard once by the rolling part
		for k, u := range report(table, time.Minute) {
			_ = k
			sum = max(sum, u.Admitted+u.Refused)
		}
	}
	if want := uint64(workers * each / 50); sum != want {
		t.Errorf("the busiest key counts %d, want %d", sum, want)
	}
}

func TestCountingAllocatesNothing(t *testing.T) {
	table := usage.NewTable(10)
	d := limit.Decision{Key: orders, Source: limit.SourceRedis}
	table.Count(orders, 1, true, d)
	if n := testing.AllocsPerRun(100, func() { table.Count(orders, 1, true, d) }); n != 0 {
		t.Errorf("%v allocations per decision", n)
	}
	table.Count(orders, 1, false, d)
	if n := testing.AllocsPerRun(100, func() { table.Count(orders, 1, false, d) }); n != 0 {
		t.Errorf("%v allocations per refusal", n)
	}
}

func BenchmarkCount(b *testing.B) {
	table := usage.NewTable(1 << 20)
	keys := make([]limit.Key, 1<<12)
	for i := range keys {
		keys[i] = limit.Key{Tenant: fmt.Sprintf("tenant-%d", i), Route: "orders"}
	}
	b.RunParallel(func(pb *testing.PB) {
		d := limit.Decision{Source: limit.SourceRedis}
		for i := 0; pb.Next(); i++ {
			table.Count(keys[i&(len(keys)-1)], 1, true, d)
		}
	})
}
