package ledger

import (
	"errors"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"partidor.dev/partidor/shared/limit"
	"partidor.dev/partidor/shared/rulesfile"
)

// TestChecksAgreeWithValidate (cases limits 44, 46, 47): what limit.Rule.Validate refuses, PostgreSQL refuses too, and the other way round.
func TestChecksAgreeWithValidate(t *testing.T) {
	_, db := migrated(t)
	for _, c := range []struct {
		name, columns, values, field string // field "" is accepted
		rule                         limit.Rule
	}{
		{"plain", "capacity, refill_per_second", "5, 1", "", limit.Rule{Capacity: 5, Refill: 1, PeriodSeconds: 1}},
		{"burst 0", "capacity, refill_per_second", "0, 1", "capacity", limit.Rule{Refill: 1, PeriodSeconds: 1}},
		{"burst -1", "capacity, refill_per_second", "-1, 1", "capacity", limit.Rule{Capacity: -1, Refill: 1, PeriodSeconds: 1}},
		{"capacity above 2^53", "capacity, refill_per_second", "9007199254740992, 1", "capacity", limit.Rule{Capacity: 1 << 53, Refill: 1, PeriodSeconds: 1}},
		{"rate 0", "capacity, refill_per_second", "5, 0", "refill_per_second", limit.Rule{Capacity: 5, PeriodSeconds: 1}},
		{"rate -5", "capacity, refill_per_second", "5, -5", "refill_per_second", limit.Rule{Capacity: 5, Refill: -5, PeriodSeconds: 1}},
		{"rate 2e9", "capacity, refill_per_second", "5, 2000000000", "refill_per_second", limit.Rule{Capacity: 5, Refill: 2_000_000_000, PeriodSeconds: 1}},
		{"rate missing", "capacity", "5", "refill_per_second", limit.Rule{Capacity: 5, PeriodSeconds: 1}},
		{"period 0", "capacity, refill_per_second, refill_period_seconds", "5, 1, 0", "refill_period_seconds", limit.Rule{Capacity: 5, Refill: 1}},
		{"period 60", "capacity, refill_per_second, refill_period_seconds", "5, 5, 60", "", limit.Rule{Capacity: 5, Refill: 5, PeriodSeconds: 60}},
		{"window", "capacity, algorithm, window_seconds", "5, 'fixed_window', 60", "", limit.Rule{Capacity: 5, PeriodSeconds: 1, Algorithm: limit.FixedWindow, WindowSeconds: 60}},
		{"calendar", "capacity, algorithm, calendar_window", "5, 'fixed_window', 'day'", "", limit.Rule{Capacity: 5, PeriodSeconds: 1, Algorithm: limit.FixedWindow, Calendar: limit.CalendarDay}},
		{"two windows", "capacity, algorithm, window_seconds, calendar_window", "5, 'fixed_window', 60, 'day'", "window", limit.Rule{Capacity: 5, PeriodSeconds: 1, Algorithm: limit.FixedWindow, WindowSeconds: 60, Calendar: limit.CalendarDay}},
		{"no window", "capacity, algorithm", "5, 'fixed_window'", "window", limit.Rule{Capacity: 5, PeriodSeconds: 1, Algorithm: limit.FixedWindow}},
		{"window of a bucket", "capacity, refill_per_second, window_seconds", "5, 1, 60", "window", limit.Rule{Capacity: 5, Refill: 1, PeriodSeconds: 1, WindowSeconds: 60}},
		{"window 0", "capacity, algorithm, window_seconds", "5, 'fixed_window', 0", "window_seconds", limit.Rule{Capacity: 5, PeriodSeconds: 1, Algorithm: limit.FixedWindow}},
		{"sliding by calendar", "capacity, algorithm, calendar_window", "5, 'sliding_window_counter', 'day'", "window", limit.Rule{Capacity: 5, PeriodSeconds: 1, Algorithm: limit.SlidingWindowCounter, Calendar: limit.CalendarDay}},
		{"long log", "capacity, algorithm, window_seconds", "10001, 'sliding_window_log', 60", "capacity", limit.Rule{Capacity: 10_001, PeriodSeconds: 1, Algorithm: limit.SlidingWindowLog, WindowSeconds: 60}},
		{"prefetch of a window", "capacity, algorithm, window_seconds, prefetch", "5, 'fixed_window', 60, true", "prefetch", limit.Rule{Capacity: 5, PeriodSeconds: 1, Algorithm: limit.FixedWindow, WindowSeconds: 60, Prefetch: true}},
		{"shards of a window", "capacity, algorithm, window_seconds, shards", "5, 'fixed_window', 60, 2", "shards", limit.Rule{Capacity: 5, PeriodSeconds: 1, Algorithm: limit.FixedWindow, WindowSeconds: 60, Shards: 2}},
		{"small shards", "capacity, refill_per_second, shards", "399, 1, 4", "shards", limit.Rule{Capacity: 399, Refill: 1, PeriodSeconds: 1, Shards: 4}},
		{"4 shards", "capacity, refill_per_second, shards", "400, 1, 4", "", limit.Rule{Capacity: 400, Refill: 1, PeriodSeconds: 1, Shards: 4}},
		{"largest cost", "capacity, refill_per_second, max_cost", "5, 1, 5", "", limit.Rule{Capacity: 5, Refill: 1, PeriodSeconds: 1, MaxCost: 5}},
		{"largest cost above the capacity", "capacity, refill_per_second, max_cost", "5, 1, 6", "max_cost", limit.Rule{Capacity: 5, Refill: 1, PeriodSeconds: 1, MaxCost: 6}},
		{"largest cost -1", "capacity, refill_per_second, max_cost", "5, 1, -1", "max_cost", limit.Rule{Capacity: 5, Refill: 1, PeriodSeconds: 1, MaxCost: -1}},
		{"largest cost above a shard", "capacity, refill_per_second, shards, max_cost", "401, 1, 4, 101", "max_cost", limit.Rule{Capacity: 401, Refill: 1, PeriodSeconds: 1, Shards: 4, MaxCost: 101}},
		{"65 shards", "capacity, refill_per_second, shards", "6500, 1, 65", "shards", limit.Rule{Capacity: 6500, Refill: 1, PeriodSeconds: 1, Shards: 65}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if err := c.rule.Validate(); (err == nil) != (c.field == "") {
				t.Errorf("Validate says %v", err)
			}
			_, err := db.Exec(t.Context(), `INSERT INTO rate_limit_rule (tenant_id, route_id, `+c.columns+`) VALUES ($1, 'r', `+c.values+`)`, c.name)
			var field *FieldError
			switch {
			case c.field == "":
				if err != nil {
					t.Errorf("refused: %v", err)
				}
			case !errors.As(wrap("write", err), &field):
				t.Errorf("error %v, want one about a field", err)
			case field.Field != c.field:
				t.Errorf("refused for %s (%v), want %s", field.Field, err, c.field)
			}
		})
	}
	for _, bad := range []string{"'infinity'", "'-infinity'", "'12026-01-01'", "'0044-03-15 BC'"} {
		_, err := db.Exec(t.Context(), `INSERT INTO rate_limit_rule (tenant_id, route_id, capacity, refill_per_second, expires_at) VALUES ('x', 'r', 5, 1, `+bad+`)`)
		var field *FieldError
		if !errors.As(wrap("write", err), &field) || field.Field != "expires_at" {
			t.Errorf("expires_at %s: %v, want a refusal of expires_at", bad, err)
		}
	}
	for _, bad := range []string{"'NaN'::float8", "'Infinity'::float8", "NULL"} {
		_, err := db.Exec(t.Context(), `INSERT INTO rate_limit_rule (tenant_id, route_id, capacity, refill_per_second) VALUES ('x', 'r', `+bad+`, 1)`)
		if err == nil {
			t.Errorf("capacity %s accepted", bad)
		}
	}
}

// TestEveryConstraintHasAField keeps constraintFields complete: a refusal without a field helps nobody.
func TestEveryConstraintHasAField(t *testing.T) {
	_, db := migrated(t)
	rows, err := db.Query(t.Context(), `SELECT conname FROM pg_constraint JOIN pg_class c ON c.oid = conrelid
		WHERE contype = 'c' AND c.relname IN ('rate_limit_rule', 'tenant', 'api_key', 'region', 'split', 'parameter')`)
	if err != nil {
		t.Fatal(err)
	}
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			t.Fatal(err)
		}
		if _, ok := constraintFields[name]; !ok && name != "split_moved" { // that one only our own code can break
			t.Errorf("constraint %s is about no field", name)
		}
	}
}

func TestSharesThatDoNotAddUpAreRefused(t *testing.T) {
	_, db := migrated(t)
	for _, sql := range []string{
		`INSERT INTO region (name, base_share) VALUES ('eu', 700000), ('us', 400000)`,
		`INSERT INTO region (name, base_share) VALUES ('eu', 700000)`,
		`INSERT INTO region (name, base_share) VALUES ('eu', 1200000), ('us', -200000)`,
		`INSERT INTO split (tenant_id, route_id, region, target_share) VALUES ('a', 'r', 'eu', 700000), ('a', 'r', 'us', 200000)`,
		`INSERT INTO region (name, base_share) VALUES ('e.u', 1000000)`,
	} {
		var pg *pgconn.PgError
		if _, err := db.Exec(t.Context(), sql); !errors.As(err, &pg) || pg.Code != "23514" {
			t.Errorf("%s: %v, want a check violation", sql, err)
		}
	}
	exec(t, db, `INSERT INTO region (name, base_share) VALUES ('eu', 700000), ('us', 300000)`)
	if got := one[string](t, db, `SELECT string_agg(name || '=' || published_share, ',' ORDER BY name) FROM region`); got != "eu=700000,us=300000" {
		t.Errorf("the first regions are published as %s", got)
	}
	// A later change is not: the rebalancer publishes it in two steps.
	exec(t, db, `BEGIN; UPDATE region SET base_share = 500000 WHERE name = 'eu'; INSERT INTO region (name, base_share) VALUES ('ap', 200000); COMMIT`)
	if got := one[string](t, db, `SELECT string_agg(name || '=' || published_share, ',' ORDER BY name) FROM region`); got != "ap=0,eu=700000,us=300000" {
		t.Errorf("published after an edit: %s", got)
	}
}

func TestShardsAndTenantLimitsExcludeEachOther(t *testing.T) {
	_, db := migrated(t)
	const sharded = `INSERT INTO rate_limit_rule (tenant_id, route_id, capacity, refill_per_second, shards) VALUES ($1, 'r', 1000, 100, 8)`
	const whole = `INSERT INTO rate_limit_rule (tenant_id, route_id, capacity, refill_per_second) VALUES ($1, '@tenant', 1000, 100)`
	exec(t, db, sharded, "a")
	exec(t, db, whole, "b") // another tenant's
	for _, c := range []struct{ sql, tenant string }{{whole, "a"}, {whole, "*"}, {whole, "@gold"}, {sharded, "b"}, {sharded, "*"}} {
		var field *FieldError
		if _, err := db.Exec(t.Context(), c.sql, c.tenant); !errors.As(wrap("write", err), &field) || field.Field != "shards" {
			t.Errorf("%s of %s: %v, want a refusal of shards", c.sql, c.tenant, err)
		}
	}
}

// What no column can hold is the caller's fault and not the ledger's: refused with a field, nothing written.
func TestWhatNoColumnHoldsIsRefused(t *testing.T) {
	pg, _ := opened(t)
	for _, c := range []struct {
		rule  rulesfile.Rule
		edit  Edit
		field string
	}{
		{rulesfile.Rule{Tenant: "a", Route: "r", Capacity: 5, RefillPerSecond: 5_000_000_000, RefillPeriodSeconds: 60}, Edit{}, "refill_per_second"},
		{rulesfile.Rule{Tenant: "a", Route: "r", Capacity: 5, RefillPerSecond: 1, Reason: "a\x00b"}, Edit{}, "value"},
		{rulesfile.Rule{Tenant: "a", Route: "r", Capacity: 5, RefillPerSecond: 1}, Edit{Author: Author{Reason: "a\x00b"}}, "value"},
	} {
		if err := c.rule.Validate(); err != nil {
			t.Fatal(err)
		}
		_, err := pg.PutRule(t.Context(), c.edit, c.rule)
		var field *FieldError
		if !errors.As(err, &field) || field.Field != c.field {
			t.Errorf("%+v: %v, want a refusal of %s", c.rule, err, c.field)
		}
	}
	if _, err := pg.RuleOf(t.Context(), "a", "r"); !errors.Is(err, ErrNotFound) {
		t.Errorf("after refusals: %v, want nothing written", err)
	}
}
