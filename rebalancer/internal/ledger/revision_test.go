package ledger

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"go.opentelemetry.io/otel/trace/noop"

	"partidor.dev/partidor/shared/limit"
	"partidor.dev/partidor/shared/testenv"
)

func revisionOf(t *testing.T, db *pgx.Conn, sql string, args ...any) limit.Revision {
	t.Helper()
	var r limit.Revision
	if err := db.QueryRow(t.Context(), sql, args...).Scan(&r.Epoch, &r.Number); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return r
}

const insertRule = `INSERT INTO rate_limit_rule (tenant_id, route_id, capacity, refill_per_second) VALUES ($1, $2, 10, 1)`

func TestRevisionsBecomeVisibleInOrder(t *testing.T) {
	url, db := migrated(t)
	// Writers that commit in another order than they began, and a reader that polls: it must see every rule once.
	const writers, each = 8, 25
	var wg sync.WaitGroup
	for w := range writers {
		conn := connect(t, url)
		wg.Go(func() {
			for i := range each {
				tx, err := conn.Begin(t.Context())
				if err != nil {
					t.Error(err)
					return
				}
				if i%2 == 0 {
					_, _ = tx.Exec(t.Context(), `SELECT pg_sleep(0.001)`)
				}
				if _, err = tx.Exec(t.Context(), insertRule, fmt.Sprint("t", w), fmt.Sprint("r", i)); err == nil {
					err = tx.Commit(t.Context())
				}
				if err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	done := make(chan struct{})
	go func() { wg.Wait(); close(done) }()
	seen := map[string]bool{}
	var last limit.Revision
	poll := func() {
		rows, err := db.Query(t.Context(), `SELECT tenant_id || '/' || route_id, revision_epoch, revision_number FROM rate_limit_rule
			WHERE (revision_epoch, revision_number) > ($1, $2)`, last.Epoch, last.Number)
		if err != nil {
			t.Fatal(err)
		}
		var name string
		var r, newest limit.Revision
		_, err = pgx.ForEachRow(rows, []any{&name, &r.Epoch, &r.Number}, func() error {
			seen[name] = true
			newest = newest.Max(r)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		last = last.Max(newest)
	}
	for running := true; running; {
		select {
		case <-done:
			running = false
		default:
		}
		poll()
	}
	if len(seen) != writers*each {
		t.Errorf("a reader that polls saw %d of %d rules", len(seen), writers*each)
	}
	if got := one[int](t, db, `SELECT count(DISTINCT revision_number) FROM rate_limit_rule`); got != writers*each {
		t.Errorf("%d distinct revisions for %d transactions", got, writers*each)
	}
}

func TestRowsOfOneTransactionShareItsRevision(t *testing.T) {
	_, db := migrated(t)
	tx, err := db.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		if _, err := tx.Exec(t.Context(), insertRule, "a", fmt.Sprint("r", i)); err != nil {
			t.Fatal(err)
		}
	}
	sub, _ := tx.Begin(t.Context())
	_, _ = sub.Exec(t.Context(), insertRule, "a", "undone")
	_ = sub.Rollback(t.Context())
	if _, err := tx.Exec(t.Context(), `INSERT INTO tenant (id) VALUES ('a')`); err != nil {
		t.Fatal(err)
	}
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := one[int](t, db, `SELECT count(DISTINCT revision_number) FROM
		(SELECT revision_number FROM rate_limit_rule UNION ALL SELECT revision_number FROM tenant) r`); got != 1 {
		t.Errorf("%d revisions, want 1", got)
	}
}

func TestRevisionOfAnAbandonedTransactionIsNotBelieved(t *testing.T) {
	_, db := migrated(t)
	// The note lives in a session that a person may tamper with.
	exec(t, db, `SET partidor.revision = '9.999.1'`)
	exec(t, db, insertRule, "a", "r")
	if got := revisionOf(t, db, `SELECT revision_epoch, revision_number FROM rate_limit_rule`); got != (limit.Revision{Epoch: 1, Number: 1}) {
		t.Errorf("revision %v, want 1.1", got)
	}
}

// TestDeletionLeavesATombstoneUntilCreatedAgain is the ledger's part of case request-path 83: recreated is newer than deleted.
func TestDeletionLeavesATombstoneUntilCreatedAgain(t *testing.T) {
	_, db := migrated(t)
	exec(t, db, insertRule, "a", "r")
	exec(t, db, `DELETE FROM rate_limit_rule`)
	first := revisionOf(t, db, `SELECT revision_epoch, revision_number FROM tombstone WHERE kind = 'rule' AND tenant_id = 'a' AND route_id = 'r'`)
	if first.Number != 2 {
		t.Errorf("tombstone at %v, want 1.2", first)
	}
	exec(t, db, insertRule, "a", "r")
	if got := one[int](t, db, `SELECT count(*) FROM tombstone`); got != 0 {
		t.Errorf("%d tombstones beside a living rule", got)
	}
	if got := revisionOf(t, db, `SELECT revision_epoch, revision_number FROM rate_limit_rule`); !got.Newer(first) {
		t.Errorf("recreated at %v, not newer than its tombstone %v", got, first)
	}
	exec(t, db, `UPDATE rate_limit_rule SET route_id = 's'`) // a rename is a deletion of the old name
	if got := one[string](t, db, `SELECT route_id FROM tombstone`); got != "r" {
		t.Errorf("tombstone of %q after a rename, want r", got)
	}
	exec(t, db, `INSERT INTO tenant (id, plan) VALUES ('a', 'gold')`)
	exec(t, db, `INSERT INTO api_key (hash, tenant_id) VALUES (sha256('k'), 'a')`)
	exec(t, db, `DELETE FROM tenant`) // and its keys with it
	if got := one[string](t, db, `SELECT string_agg(kind || ':' || tenant_id || name, ',' ORDER BY kind) FROM tombstone WHERE kind <> 'rule'`); got !=
		"api_key:8254c329a92850f6d539dd376f4816ee2764517da5e0235514af433164480d7a,tenant:a" {
		t.Errorf("tombstones %s", got)
	}
	if _, err := db.Exec(t.Context(), `TRUNCATE rate_limit_rule`); err == nil {
		t.Error("TRUNCATE would hide deletions and was allowed")
	}
}

func TestUpdateThatChangesNothingIsNoRevision(t *testing.T) {
	_, db := migrated(t)
	exec(t, db, insertRule, "a", "r")
	before := revisionOf(t, db, `SELECT epoch, number FROM ledger_revision`)
	exec(t, db, `UPDATE rate_limit_rule SET capacity = 10, reason = 'again'`)
	if after := revisionOf(t, db, `SELECT epoch, number FROM ledger_revision`); after != before {
		t.Errorf("revision %v after an update without change, want %v", after, before)
	}
	if got := one[int](t, db, `SELECT count(*) FROM rule_history`); got != 1 {
		t.Errorf("%d entries in the history, want 1", got)
	}
}

func TestHistoryOfPlainSQL(t *testing.T) {
	_, db := migrated(t)
	exec(t, db, insertRule, "a", "r")
	exec(t, db, `UPDATE rate_limit_rule SET capacity = 20, updated_by = 'anna', reason = 'sale'`)
	exec(t, db, `UPDATE rate_limit_rule SET capacity = 30`) // says neither who nor why: not anna's, not for the sale
	exec(t, db, `DELETE FROM rate_limit_rule`)
	rows, _ := db.Query(t.Context(), `SELECT concat_ws('|', operation, actor, reason, before ->> 'capacity', after ->> 'capacity') FROM rule_history ORDER BY id`)
	got, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	want := "insert|app||10\nupdate|anna|sale|10|20\nupdate|app||20|30\ndelete|app||30"
	if strings.Join(got, "\n") != want {
		t.Errorf("history\n%s\nwant\n%s", strings.Join(got, "\n"), want)
	}
}

// TestEpochRisesWithTheTimeline: a promoted standby may have lost revisions that readers have seen; its own must be newer.
func TestEpochRisesWithTheTimeline(t *testing.T) {
	_, db := migrated(t)
	exec(t, db, insertRule, "a", "r")
	exec(t, db, `UPDATE ledger_revision SET timeline = timeline - 1`) // as if the row had been written before a promotion
	if got := one[int64](t, db, `SELECT ledger_observe_timeline()`); got != 2 {
		t.Errorf("epoch %d after the timeline changed, want 2", got)
	}
	exec(t, db, `UPDATE ledger_revision SET system_identifier = 1`) // as if restored into another cluster
	exec(t, db, `UPDATE rate_limit_rule SET capacity = 11`)
	if got := revisionOf(t, db, `SELECT revision_epoch, revision_number FROM rate_limit_rule`); got.Epoch != 3 {
		t.Errorf("a write in another cluster has revision %v, want epoch 3", got)
	}
}

// TestEpochRisesWhenAStandbyIsPromoted does it for real.
func TestEpochRisesWhenAStandbyIsPromoted(t *testing.T) {
	server := testenv.StartPostgresServer(t)
	url := server.Database(t).URL
	up(t, url)
	db := connect(t, url)
	exec(t, db, insertRule, "a", "r")
	db.Close(t.Context())
	server.Stop()
	if err := os.WriteFile(filepath.Join(server.Dir, "standby.signal"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	server.Restart(t)
	db = connect(t, url)
	exec(t, db, `SELECT pg_promote()`)
	exec(t, db, `UPDATE rate_limit_rule SET capacity = 12`)
	if got := revisionOf(t, db, `SELECT revision_epoch, revision_number FROM rate_limit_rule`); got.Epoch != 2 {
		t.Errorf("revision %v after a promotion, want epoch 2", got)
	}
	pg, err := Open(t.Context(), url, 3, noop.NewTracerProvider(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer pg.Close()
	seen, err := pg.ReadLease(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	// Terms of the new epoch are above all that the old primary can have given out.
	if term, err := pg.TakeLease(t.Context(), seen, "b"); err != nil || term <= 2<<32 {
		t.Errorf("term %d, %v; want one above %d", term, err, int64(2)<<32)
	}
}
