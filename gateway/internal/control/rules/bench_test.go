package rules_test

import (
	"runtime"
	"testing"

	"partidor.dev/partidor/gateway/internal/snapshot"
)

// BenchmarkLoad reads 500,000 rules of 100,000 tenants, each with a plan and an API key, from PostgreSQL: time of the first
// load, memory of the snapshot that comes of it, and time of an increment of 1 %.
func BenchmarkLoad(b *testing.B) {
	l := newLedger(b)
	l.exec(`ALTER TABLE rate_limit_rule DISABLE TRIGGER USER`)
	l.exec(`ALTER TABLE tenant DISABLE TRIGGER USER`)
	l.exec(`ALTER TABLE api_key DISABLE TRIGGER USER`)
	l.exec(`INSERT INTO tenant (id, plan, revision_epoch, revision_number) SELECT 'tenant-' || i, 'plan-' || i % 3, 1, 1 FROM generate_series(1, 100000) i`)
	l.exec(`INSERT INTO api_key (hash, tenant_id, revision_epoch, revision_number) SELECT sha256(i::text::bytea), 'tenant-' || i, 1, 1 FROM generate_series(1, 100000) i`)
	l.exec(`INSERT INTO rate_limit_rule (tenant_id, route_id, capacity, refill_per_second, revision_epoch, revision_number)
	        SELECT 'tenant-' || i, 'route-' || r, 200, 100, 1, 1 FROM generate_series(1, 100000) i, generate_series(1, 5) r`)
	l.exec(`UPDATE ledger_revision SET number = 1`)
	l.exec(`ANALYZE`)

	b.Run("whole", func(b *testing.B) {
		for b.Loop() {
			l.holder = snapshot.NewHolder("eu")
			before := heap()
			fresh := newLedgerLoader(b, l)
			if err := fresh.Start(b.Context()); err != nil {
				b.Fatal(err)
			}
			b.ReportMetric(float64(heap()-before)/1e6, "MB")
			if n := l.holder.Load().Counts().Rules; n != 500_000 {
				b.Fatalf("%d rules", n)
			}
		}
	})
	number := 1
	b.Run("increment", func(b *testing.B) {
		fresh := newLedgerLoader(b, l)
		for b.Loop() {
			b.StopTimer()
			number++
			l.exec(`UPDATE rate_limit_rule SET capacity = $1, revision_number = $1 WHERE id % 100 = $1::bigint % 100`, number+200)
			l.exec(`UPDATE ledger_revision SET number = $1`, number+200)
			b.StartTimer()
			if err := fresh.Start(b.Context()); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
