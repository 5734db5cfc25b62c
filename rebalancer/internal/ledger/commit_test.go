package ledger

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"go.opentelemetry.io/otel/trace/noop"

	"partidor.dev/partidor/shared/limit"
)

// opened is a migrated ledger with the regions eu 70 % and us 30 %.
func opened(t *testing.T) (*Postgres, *pgx.Conn) {
	t.Helper()
	url, db := migrated(t)
	exec(t, db, `INSERT INTO region (name, base_share) VALUES ('eu', 700000), ('us', 300000)`)
	pg, err := Open(t.Context(), url, 4, noop.NewTracerProvider(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pg.Close)
	return pg, db
}

func lead(t *testing.T, pg *Postgres, holder string) int64 {
	t.Helper()
	seen, err := pg.ReadLease(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	term, err := pg.TakeLease(t.Context(), seen, holder)
	if err != nil {
		t.Fatal(err)
	}
	return term
}

var key = limit.Key{Tenant: "a", Route: "r"}

func decision(term, cycle int64, eu limit.Share) Decision {
	return Decision{Term: term, Cycle: cycle, Holder: "x", Regions: []string{"eu", "us"}, Changes: []Change{
		{Key: key, Before: []limit.Share{700_000, 300_000}, After: []limit.Share{eu, limit.Whole - eu}, Reason: "follow"}}}
}

func TestCommitWritesSplitAndHistory(t *testing.T) {
	pg, db := opened(t)
	term := lead(t, pg, "x")
	d := decision(term, 1, 600_000)
	d.Observed = []Observation{{Key: key, Shares: []limit.Share{650_000, Unreported}, Base: []limit.Share{700_000, 300_000}}}
	if err := pg.Commit(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	split, err := pg.SplitOf(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(limit.Split{"eu": 600_000, "us": 400_000}, split.Target()); diff != "" {
		t.Error(diff)
	}
	eu, us := split.Regions[0], split.Regions[1]
	if eu.Observed == nil || *eu.Observed != 650_000 || us.Observed != nil {
		t.Errorf("observed %+v %+v", eu, us)
	}
	if eu.Base == nil || *eu.Base != 700_000 || us.Base == nil || *us.Base != 300_000 {
		t.Errorf("a moved key must have its base noted in every region: %+v %+v", eu, us)
	}
	got := one[string](t, db, `SELECT concat_ws('|', operation, actor, reason, before, after, term = $1, cycle) FROM split_history`, term)
	if want := `plan|rebalancer x|follow|{"eu": 700000, "us": 300000}|{"eu": 600000, "us": 400000}|t|1`; got != want {
		t.Errorf("history %s, want %s", got, want)
	}
	// The base is noted once, whatever the base split becomes.
	exec(t, db, `UPDATE region SET base_share = 500000, published_share = 300000`)
	d = decision(term, 2, 500_000)
	d.Observed = []Observation{{Key: key, Shares: []limit.Share{600_000, 400_000}, Base: []limit.Share{300_000, 700_000}}}
	if err := pg.Commit(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	if split, _ = pg.SplitOf(t.Context(), key); *split.Regions[0].Base != 700_000 {
		t.Errorf("base of a moved key edited to %d", *split.Regions[0].Base)
	}
	if _, err := db.Exec(t.Context(), `UPDATE split SET base_share = 1`); err == nil {
		t.Error("SQL could edit the base of a moved key")
	}
	if _, err := db.Exec(t.Context(), `DELETE FROM split`); err == nil {
		t.Error("SQL could forget that a key has moved")
	}
}

// TestStaleWriterIsRefused is case request-path 95 at its core: the term of the write decides.
func TestStaleWriterIsRefused(t *testing.T) {
	pg, db := opened(t)
	first := lead(t, pg, "x")
	if err := pg.Commit(t.Context(), decision(first, 1, 600_000)); err != nil {
		t.Fatal(err)
	}
	second := lead(t, pg, "y")
	if second <= first {
		t.Fatalf("term %d after %d", second, first)
	}
	d := decision(first, 2, 100_000)
	d.Observed = []Observation{{Key: key, Shares: []limit.Share{1, 2}}}
	if err := pg.Commit(t.Context(), d); !errors.Is(err, ErrFenced) {
		t.Errorf("stale commit: %v, want ErrFenced", err)
	}
	if _, err := pg.RenewLease(t.Context(), first); !errors.Is(err, ErrFenced) {
		t.Errorf("stale renewal: %v, want ErrFenced", err)
	}
	if got := one[int](t, db, `SELECT target_share FROM split WHERE region = 'eu'`); got != 600_000 {
		t.Errorf("target %d, the stale writer got through", got)
	}
	if got := one[int](t, db, `SELECT count(*) FROM split_history`); got != 1 {
		t.Errorf("%d entries in the history, want 1", got)
	}
}

// TestStoppedWriterDoesNotHoldUpATakeOver: a leader that is stopped with its transaction open, locks held, is cut off by
// PostgreSQL itself.
func TestStoppedWriterDoesNotHoldUpATakeOver(t *testing.T) {
	pg, db := opened(t)
	term := lead(t, pg, "x")
	stopped := make(chan struct{})
	resume := make(chan struct{})
	end := make(chan error, 1)
	go func() {
		end <- pg.change(t.Context(), "stopped commit", Author{}, func(tx pgx.Tx) error {
			d := decision(term, 1, 100_000)
			if err := writeChanges(t.Context(), tx, &d, d.Changes); err != nil {
				return err
			}
			if err := fence(t.Context(), tx, term); err != nil {
				return err
			}
			close(stopped) // SIGSTOP here: fenced in, not yet committed
			<-resume
			return nil
		})
	}()
	<-stopped
	at := time.Now()
	second := lead(t, pg, "y")
	if took := time.Since(at); took > 4*time.Second {
		t.Errorf("take-over took %v", took)
	}
	if err := pg.Commit(t.Context(), decision(second, 1, 650_000)); err != nil {
		t.Error(err)
	}
	close(resume)
	if err := <-end; err == nil {
		t.Error("the stopped writer's commit went through after the take-over")
	}
	if got := one[int](t, db, `SELECT target_share FROM split WHERE region = 'eu'`); got != 650_000 {
		t.Errorf("target %d, want the new leader's", got)
	}
}

func TestTakeLeaseIsCompareAndSet(t *testing.T) {
	pg, _ := opened(t)
	seen, err := pg.ReadLease(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := pg.TakeLease(t.Context(), seen, "x"); err != nil {
		t.Fatal(err)
	}
	if _, err := pg.TakeLease(t.Context(), seen, "y"); !errors.Is(err, ErrConflict) {
		t.Errorf("second take of what both have seen: %v, want ErrConflict", err)
	}
}

func TestRefreshFollowsTheLedger(t *testing.T) {
	pg, db := opened(t)
	exec(t, db, insertRule, "a", "r")
	exec(t, db, insertRule, "@gold", "*")
	exec(t, db, insertRule, "*", "*")
	exec(t, db, `INSERT INTO tenant (id, plan) VALUES ('b', 'gold')`)
	exec(t, db, `INSERT INTO parameter (name, value) VALUES ('cycle', '"30s"')`)
	var m Mirror
	refresh := func() {
		t.Helper()
		if err := pg.Refresh(t.Context(), &m); err != nil {
			t.Fatal(err)
		}
	}
	rule := func(tenant, route string) string {
		match := m.Rules.Lookup(limit.Key{Tenant: tenant, Route: route}, time.Now())
		return fmt.Sprintf("%s/%s", match.Tenant, match.Route)
	}
	refresh()
	for _, c := range [][3]string{{"a", "r", "a/r"}, {"a", "s", "*/*"}, {"b", "s", "@gold/*"}, {"c", "r", "*/*"}} {
		if got := rule(c[0], c[1]); got != c[2] {
			t.Errorf("%s/%s matches %s, want %s", c[0], c[1], got, c[2])
		}
	}
	if string(m.Parameters["cycle"].Value) != `"30s"` {
		t.Errorf("parameters %v", m.Parameters)
	}
	exec(t, db, `DELETE FROM rate_limit_rule WHERE tenant_id IN ('a', '*')`)
	exec(t, db, `UPDATE tenant SET plan = ''`)
	exec(t, db, `DELETE FROM parameter`)
	refresh()
	if got := rule("a", "r"); got != "/" { // the default
		t.Errorf("after the deletion a/r matches %s", got)
	}
	if got := rule("b", "s"); got != "/" {
		t.Errorf("without its plan b/s matches %s", got)
	}
	if len(m.Parameters) != 0 {
		t.Errorf("parameters %v", m.Parameters)
	}
	term := lead(t, pg, "x")
	if err := pg.Commit(t.Context(), decision(term, 1, 600_000)); err != nil {
		t.Fatal(err)
	}
	refresh()
	if got := m.Splits[key]; got.Target()["eu"] != 600_000 {
		t.Errorf("split %+v", got)
	}
	// A new epoch means that everything is read again.
	exec(t, db, insertRule, "z", "r")
	refresh()
	exec(t, db, `DROP TRIGGER rule_record ON rate_limit_rule; DELETE FROM rate_limit_rule WHERE tenant_id = 'z'`) // lost with the old primary
	exec(t, db, `UPDATE ledger_revision SET timeline = timeline - 1; SELECT ledger_observe_timeline()`)
	refresh()
	if got := rule("z", "r"); got != "/" || m.Revision.Epoch != 2 {
		t.Errorf("a rule lost in a fail-over still matches as %s at %v", got, m.Revision)
	}
}

func TestListenHearsEveryChange(t *testing.T) {
	pg, db := opened(t)
	heard := make(chan limit.Revision, 10)
	go pg.Listen(t.Context(), func(at limit.Revision) { heard <- at }, func() {}) //nolint:errcheck // ends with the test
	first := <-heard
	exec(t, db, insertRule, "a", "r")
	if got := <-heard; !got.Newer(first) {
		t.Errorf("heard %v after %v", got, first)
	}
	exec(t, db, `UPDATE ledger_revision SET timeline = timeline - 1`)
	select {
	case got := <-heard:
		if got.Epoch != 2 {
			t.Errorf("heard %v, want epoch 2", got)
		}
	case <-time.After(3 * listenCheck):
		t.Error("a fail-over without a write was not noticed")
	}
}
