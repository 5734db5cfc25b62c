package ledger

import (
	"errors"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"go.opentelemetry.io/otel/trace/noop"
)

// TestRoles: gateways only read; operators edit by SQL, revisioned and recorded, and touch nothing else; a rebalancer needs
// no more than its role.
func TestRoles(t *testing.T) {
	url, db := migrated(t)
	exec(t, db, insertRule, "a", "r")
	for _, c := range []struct {
		role, sql string
		allowed   bool
	}{
		{"partidor_gateway", `SELECT * FROM rate_limit_rule, tenant, api_key, region, split, parameter, tombstone, ledger_revision`, true},
		{"partidor_gateway", `UPDATE rate_limit_rule SET capacity = 99`, false},
		{"partidor_gateway", `SELECT * FROM history`, false},
		{"partidor_gateway", `SELECT ledger_next_revision()`, false},
		{"partidor_operator", `UPDATE rate_limit_rule SET capacity = 77, reason = 'by hand'`, true},
		{"partidor_operator", `INSERT INTO region (name, base_share) VALUES ('eu', 1000000)`, true},
		{"partidor_operator", `INSERT INTO tenant (id) VALUES ('x')`, true},
		{"partidor_operator", `DELETE FROM tenant`, true},
		{"partidor_operator", `DELETE FROM history`, false},
		{"partidor_operator", `UPDATE ledger_revision SET number = 0`, false},
		{"partidor_operator", `UPDATE split SET target_share = 0`, false},
		{"partidor_operator", `UPDATE leader SET term = 1`, false},
	} {
		exec(t, db, `SET ROLE `+c.role)
		_, err := db.Exec(t.Context(), c.sql)
		var pg *pgconn.PgError
		if denied := errors.As(err, &pg) && pg.Code == "42501"; denied == c.allowed || err != nil && !denied {
			t.Errorf("%s: %s: %v, allowed should be %v", c.role, c.sql, err, c.allowed)
		}
		exec(t, db, `RESET ROLE`)
	}
	if got := one[string](t, db, `SELECT concat_ws(' ', actor, reason, after ->> 'capacity') FROM rule_history ORDER BY id DESC LIMIT 1`); got != "app by hand 77" {
		t.Errorf("an operator's edit is recorded as %q", got)
	}
	pg, err := Open(t.Context(), url+"&options=-c%20role%3Dpartidor_rebalancer", 3, noop.NewTracerProvider(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer pg.Close()
	exec(t, db, `UPDATE region SET base_share = 0 WHERE name = 'eu'; INSERT INTO region (name, base_share) VALUES ('us', 1000000)`)
	term := lead(t, pg, "x")
	d := decision(term, 1, 600_000)
	d.Observed = []Observation{{Key: key, Shares: d.Changes[0].After, Base: d.Changes[0].Before}}
	if err := pg.Commit(t.Context(), d); err != nil {
		t.Errorf("commit as partidor_rebalancer: %v", err)
	}
	if _, err := pg.RenewLease(t.Context(), term); err != nil {
		t.Error(err)
	}
	if _, err := pg.EndExpired(t.Context(), term); err != nil {
		t.Error(err)
	}
	if err := pg.RollUpDemand(t.Context(), term, keepMinutes); err != nil {
		t.Error(err)
	}
	var m Mirror
	if err := pg.Refresh(t.Context(), &m); err != nil {
		t.Error(err)
	}
}
