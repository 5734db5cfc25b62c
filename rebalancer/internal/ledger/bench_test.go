package ledger

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"
	"go.opentelemetry.io/otel/trace/noop"

	"partidor.dev/partidor/shared/testenv"
)

// BenchmarkScale is what the ledger costs with rules for 100,000 tenants × 3 routes.
func BenchmarkScale(b *testing.B) {
	url := testenv.StartPostgres(b).URL
	m, err := NewMigrator(url)
	if err != nil {
		b.Fatal(err)
	}
	_, err = m.Up(b.Context())
	m.Close()
	if err != nil {
		b.Fatal(err)
	}
	db, err := pgx.Connect(b.Context(), url)
	if err != nil {
		b.Fatal(err)
	}
	defer db.Close(context.WithoutCancel(b.Context()))
	// Rows as an import of a dump makes them: without triggers, with their revisions.
	_, err = db.Exec(b.Context(), `SET session_replication_role = replica;
		INSERT INTO rate_limit_rule (tenant_id, route_id, capacity, refill_per_second, revision_epoch, revision_number)
		SELECT 'tenant-' || t, 'route-' || r, 200, 100, 1, 1 FROM generate_series(1, 100000) t, generate_series(1, 3) r;
		INSERT INTO split (tenant_id, route_id, region, target_share)
		SELECT 'tenant-' || t, 'route-1', g, CASE g WHEN 'ap' THEN 200000 ELSE 400000 END FROM generate_series(1, 100000) t, unnest(ARRAY['ap', 'eu', 'us']) g;
		UPDATE ledger_revision SET number = 1; SET session_replication_role = origin; ANALYZE`)
	if err != nil {
		b.Fatal(err)
	}
	pg, err := Open(b.Context(), url, 4, noop.NewTracerProvider(), nil)
	if err != nil {
		b.Fatal(err)
	}
	defer pg.Close()

	b.Run("load everything", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			var m Mirror
			if err := pg.Refresh(b.Context(), &m); err != nil {
				b.Fatal(err)
			}
			if m.Rules.Len() != 300_000 || len(m.Splits) != 100_000 {
				b.Fatal(m.Rules.Len(), len(m.Splits))
			}
		}
	})
	b.Run("refresh without a change", func(b *testing.B) {
		var m Mirror
		if err := pg.Refresh(b.Context(), &m); err != nil {
			b.Fatal(err)
		}
		if _, err := db.Exec(b.Context(), `UPDATE split SET updated_at = now() - interval '1 hour'`); err != nil {
			b.Fatal(err)
		}
		for b.Loop() {
			if err := pg.Refresh(b.Context(), &m); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("a page of rules", func(b *testing.B) {
		for b.Loop() {
			rules, err := pg.Rules(b.Context(), Filter{After: [2]string{"tenant-50000", ""}, Limit: 101})
			if err != nil || len(rules) != 101 {
				b.Fatal(err, len(rules))
			}
		}
	})
	b.Run("a search through all rules", func(b *testing.B) {
		for b.Loop() {
			rules, err := pg.Rules(b.Context(), Filter{Part: "99999", Limit: 101})
			if err != nil || len(rules) != 3 {
				b.Fatal(err, len(rules))
			}
		}
	})
}
