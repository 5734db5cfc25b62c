package app

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"partidor.dev/partidor/shared/limit"
	"partidor.dev/partidor/shared/testenv"
	"partidor.dev/partidor/shared/testenv/natsenv"
)

// newWorldOn is a world on a database whose server the test may stop.
func newWorldOn(t *testing.T, database *testenv.Postgres) *world {
	t.Helper()
	w := &world{url: database.URL, nats: natsenv.Start(t)}
	m, err := OpenMigration("", w.url)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close() //nolint:errcheck // nothing is left to be written
	if s := m.Up(t.Context()); s.Err != nil {
		t.Fatal(s.Err)
	}
	w.conn = w.nats.Conn(t)
	return w
}

type status struct {
	Leading bool
	Term    int64
	Cycle   *struct {
		Number int64
		Error  string
	}
}

// TestPostgresFailsOver: while the ledger is away nothing is decided and everybody can see it; after a promotion the same
// rebalancer leads again, in a term and with revisions above all that the old primary can have given out.
func TestPostgresFailsOver(t *testing.T) {
	server := testenv.StartPostgresServer(t)
	database := server.Database(t)
	w := newWorldOn(t, database)
	w.db = database.Conn(t)
	w.exec(t, `INSERT INTO region (name, base_share) VALUES ('eu', 700000), ('us', 300000)`)
	w.exec(t, `INSERT INTO rate_limit_rule (tenant_id, route_id, capacity, refill_per_second) VALUES ('shop-a', 'create-order', 200, 100)`)
	url, _ := w.start(t, "one")
	read := func() (s status) {
		get(t, url+"/v1/status", &s)
		return s
	}
	eventually(t, "leads and has run a cycle", func() bool { s := read(); return s.Leading && s.Cycle != nil && s.Cycle.Error == "" })
	before := read()

	server.Stop()
	eventually(t, "not ready without its ledger", func() bool { return get(t, url+"/readyz", nil) == http.StatusServiceUnavailable })
	eventually(t, "no longer leads", func() bool { return !read().Leading })
	if err := os.WriteFile(filepath.Join(server.Dir, "standby.signal"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Join(server.Dir, "standby.signal"), 0o644); err != nil {
		t.Fatal(err)
	}
	server.Restart(t)
	w.db = database.Conn(t)
	w.exec(t, `SELECT pg_promote()`)

	eventually(t, "leads again", func() bool {
		s := read()
		return s.Leading && s.Cycle != nil && s.Cycle.Error == "" && s.Term > before.Term
	})
	if after := read(); after.Term>>32 <= before.Term>>32 {
		t.Errorf("term %d after a fail-over, %d before: want one of the new epoch", after.Term, before.Term)
	}
	var at limit.Revision
	eventually(t, "the epoch has risen", func() bool {
		err := w.db.QueryRow(t.Context(), `SELECT epoch, number FROM ledger_revision`).Scan(&at.Epoch, &at.Number)
		return err == nil && at.Epoch == 2
	})
	eventually(t, "ready again", func() bool { return get(t, url+"/readyz", nil) == http.StatusOK })
}

// TestAgeOfTheLastDecisionIsAMetric is case request-path 94: a rebalancer that decides nothing is seen, and nothing
// it has decided before goes away.
func TestAgeOfTheLastDecisionIsAMetric(t *testing.T) {
	w := newWorld(t)
	w.exec(t, `UPDATE leader SET decided_at = now() - interval '1 hour', holder = 'gone'`)
	w.exec(t, `INSERT INTO split (tenant_id, route_id, region, target_share) VALUES ('a', 'r', 'eu', 200000), ('a', 'r', 'us', 800000)`)
	w.exec(t, `INSERT INTO parameter (name, value) VALUES ('paused', 'true')`)
	url, _ := w.start(t, "one")
	eventually(t, "an age of an hour", func() bool {
		for _, line := range strings.Split(w.metrics(t, url), "\n") {
			if strings.HasPrefix(line, "partidor_rebalancer_cycle_age_seconds") {
				return strings.Contains(line, " 36") // 3600 and some
			}
		}
		return false
	})
	var eu limit.Share
	if err := w.db.QueryRow(t.Context(), `SELECT target_share FROM split WHERE region = 'eu'`).Scan(&eu); err != nil || eu != 200_000 {
		t.Errorf("target %d, %v after an hour without decisions", eu, err)
	}
}

func (w *world) metrics(t *testing.T, url string) string {
	t.Helper()
	res, err := http.Get(url + "/metrics") //nolint:noctx // a test
	if err != nil {
		return ""
	}
	defer res.Body.Close()
	data, err := io.ReadAll(res.Body)
	if err != nil {
		t.Error(err)
	}
	return string(data)
}
