package ledger

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"

	"partidor.dev/partidor/shared/testenv"
)

// migrated is a fresh database with every migration applied, and a connection to it.
func migrated(t *testing.T) (url string, db *pgx.Conn) {
	t.Helper()
	url = testenv.StartPostgres(t).URL
	up(t, url)
	return url, connect(t, url)
}

func up(t *testing.T, url string) {
	t.Helper()
	m, err := NewMigrator(url)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	if _, err := m.Up(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func connect(t *testing.T, url string) *pgx.Conn {
	t.Helper()
	db, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close(context.WithoutCancel(t.Context())) })
	return db
}

func exec(t *testing.T, db *pgx.Conn, sql string, args ...any) {
	t.Helper()
	if _, err := db.Exec(t.Context(), sql, args...); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

func one[T any](t *testing.T, db *pgx.Conn, sql string, args ...any) T {
	t.Helper()
	var v T
	if err := db.QueryRow(t.Context(), sql, args...).Scan(&v); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return v
}

func TestMigrationsGoUpAndDownAndUp(t *testing.T) {
	url := testenv.StartPostgres(t).URL
	m, err := NewMigrator(url)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	if pending, err := m.Pending(t.Context()); err != nil || !pending {
		t.Fatalf("pending of an empty database: %v, %v; want true", pending, err)
	}
	up, err := m.Up(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	db := connect(t, url)
	exec(t, db, `INSERT INTO rate_limit_rule (tenant_id, route_id, capacity, refill_per_second) VALUES ('a', 'r', 5, 1)`)
	exec(t, db, `INSERT INTO rate_limit_rule (tenant_id, route_id, capacity, refill_per_second) VALUES ('b', 'r', 5000000000, 1)`)
	if _, err := m.DownTo(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	if got := one[int](t, db, `SELECT count(*) FROM rate_limit_rule`); got != 1 {
		t.Errorf("rules after going down to the first form: %d, want only the one it can say", got)
	}
	again, err := m.Up(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(again) != len(up)-1 {
		t.Errorf("second up applied %d steps, want %d", len(again), len(up)-1)
	}
	if _, err := m.DownTo(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	if got := one[int](t, db, `SELECT count(*) FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace
		WHERE nspname = 'public' AND relkind IN ('r', 'p', 'S') AND relname NOT LIKE 'goose%'`); got != 0 {
		t.Errorf("%d relations left after going all the way down", got)
	}
	if got := one[int](t, db, `SELECT count(*) FROM pg_proc p JOIN pg_namespace n ON n.oid = pronamespace WHERE nspname = 'public'`); got != 0 {
		t.Errorf("%d functions left after going all the way down", got)
	}
}

// Rows that older CHECKs let through are put right, not in the way.
func TestNewerBoundsPutOldRowsRight(t *testing.T) {
	url, db := migrated(t)
	m, err := NewMigrator(url)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	if _, err := m.DownTo(t.Context(), 10); err != nil {
		t.Fatal(err)
	}
	exec(t, db, `INSERT INTO rate_limit_rule (tenant_id, route_id, capacity, refill_per_second, shards, expires_at)
		VALUES ('a', '@tenant', 5, 1, 1, 'infinity'), ('b', 'r', 50, 1, 8, NULL), ('c', 'r', 5000, 1, 8, '-infinity'), ('d', 'r', 5, 1, 1, '12026-01-01')`)
	exec(t, db, `INSERT INTO tenant (id) VALUES ('a'); INSERT INTO api_key (hash, tenant_id, expires_at) VALUES (sha256('k'), 'a', 'infinity')`)
	exec(t, db, `INSERT INTO region (name, base_share) VALUES ('eu', 1000000);
		INSERT INTO split (tenant_id, route_id, region, target_share, pinned_share, pin_expires_at) VALUES ('a', 'r', 'eu', 1000000, 1000000, 'infinity')`)
	if _, err := m.Up(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := db.Exec(t.Context(), `UPDATE split SET pin_expires_at = 'infinity'`); err == nil {
		t.Error("a pin that ends at infinity is accepted: no mirror could read it")
	}
	got := one[string](t, db, `SELECT string_agg(concat_ws(' ', tenant_id, shards, extract(year FROM expires_at AT TIME ZONE 'UTC')), ', ' ORDER BY tenant_id) FROM rate_limit_rule`)
	if want := "a 1, b 1, c 8 1970, d 1"; got != want {
		t.Errorf("rules %q, want %q", got, want)
	}
}

func TestRuleOfTheDesignRunsVerbatim(t *testing.T) {
	_, db := migrated(t)
	exec(t, db, `INSERT INTO rate_limit_rule (tenant_id, route_id, capacity, refill_per_second) VALUES ('shop-a', 'create-order', 200, 100);`)
	got := one[string](t, db, `SELECT concat_ws(' ', id, capacity, refill_per_second, refill_period_seconds, algorithm, mode, on_error, shards)
		FROM rate_limit_rule WHERE tenant_id = 'shop-a' AND route_id = 'create-order'`)
	if want := "1 200 100 1 token_bucket enforce local 1"; got != want {
		t.Errorf("rule %q, want %q", got, want)
	}
}
