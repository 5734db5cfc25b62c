package rules_test

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"partidor.dev/partidor/gateway/internal/control/rules"
	"partidor.dev/partidor/gateway/internal/control/rules/ledgertest"
	"partidor.dev/partidor/gateway/internal/snapshot"
	"partidor.dev/partidor/shared/limit"
	"partidor.dev/partidor/shared/testenv"
)

// ledger is a fresh database with the ledger's schema, and a gateway of eu that reads it.
type ledger struct {
	testing.TB
	pg     *testenv.Postgres
	conn   *pgx.Conn
	pool   *pgxpool.Pool
	holder *snapshot.Holder
	loader *rules.Loader
}

func newLedger(tb testing.TB, change ...func(*rules.Options)) *ledger {
	tb.Helper()
	pg := testenv.StartPostgres(tb)
	l := &ledger{TB: tb, pg: pg, conn: pg.Conn(tb), holder: snapshot.NewHolder("eu")}
	ledgertest.Migrate(tb, l.conn)
	l.pool = pool(tb, pg.URL)
	o := rules.Options{Holder: l.holder, Source: rules.NewLedger(l.pool, "eu", 50_000), Poll: time.Hour}
	for _, f := range change {
		f(&o)
	}
	l.loader = newLoader(tb, o)
	return l
}

func pool(tb testing.TB, url string) *pgxpool.Pool {
	tb.Helper()
	p, err := pgxpool.New(tb.Context(), url)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(p.Close)
	return p
}

// newLedgerLoader is another loader into l's holder.
func newLedgerLoader(tb testing.TB, l *ledger) *rules.Loader {
	tb.Helper()
	return newLoader(tb, rules.Options{Holder: l.holder, Source: rules.NewLedger(l.pool, "eu", 50_000)})
}

func newLoader(tb testing.TB, o rules.Options) *rules.Loader {
	tb.Helper()
	l, err := rules.New(o)
	if err != nil {
		tb.Fatal(err)
	}
	return l
}

func (l *ledger) exec(sql string, args ...any) {
	l.Helper()
	if _, err := l.conn.Exec(l.Context(), sql, args...); err != nil {
		l.Fatalf("%s: %v", sql, err)
	}
}

// login makes a new role of the server, which outlives the database, and returns the database's URL for it.
func (l *ledger) login(options string) (url string) {
	l.Helper()
	role := fmt.Sprintf("role_%d", time.Now().UnixNano())
	l.exec(`CREATE ROLE ` + role + ` ` + options)
	return strings.Replace(l.pg.URL, "//app@", "//"+role+"@", 1)
}

// read is one look at the database.
func (l *ledger) read() {
	l.Helper()
	if err := l.loader.Start(l.Context()); err != nil {
		l.Fatal(err)
	}
}

// eventually waits for what a loader does in its own time.
func eventually(tb testing.TB, within time.Duration, what string, ok func() bool) {
	tb.Helper()
	testenv.Eventually(tb, within, func() error {
		if !ok() {
			return errors.New(what)
		}
		return nil
	})
}

const insertShopA = `INSERT INTO rate_limit_rule (tenant_id, route_id, capacity, refill_per_second) VALUES ('shop-a', 'create-order', 200, 100)`

func TestLedgerIsReadWhole(t *testing.T) {
	l := newLedger(t)
	hash := sha256.Sum256([]byte("k-shop-a"))
	l.exec(insertShopA)
	l.exec(`INSERT INTO rate_limit_rule (tenant_id, route_id, capacity, refill_per_second, refill_period_seconds, mode, on_error, prefetch, shards, max_cost, hide_headers)
	        VALUES ('@gold', '*', 600, 5, 60, 'shadow', 'deny', true, 4, 150, true)`)
	l.exec(`INSERT INTO rate_limit_rule (tenant_id, route_id, capacity, algorithm, calendar_window) VALUES ('*', 'report', 1000, 'fixed_window', 'day')`)
	l.exec(`INSERT INTO tenant (id, plan) VALUES ('shop-a', ''), ('shop-b', 'gold')`)
	l.exec(`INSERT INTO api_key (hash, tenant_id) VALUES ($1, 'shop-a')`, hash[:])
	l.exec(`INSERT INTO region (name, base_share, floor_share) VALUES ('eu', 700000, NULL), ('us', 300000, 20000)`)
	l.read()

	s := l.holder.Load()
	want := limit.Rule{Capacity: 200, Refill: 100, PeriodSeconds: 1, Shards: 1, Revision: limit.Revision{Epoch: 1, Number: 1}}
	m := s.Lookup("shop-a", "create-order")
	if d := cmp.Diff(want, *m.Rule); d != "" {
		t.Errorf("shop-a/create-order: %s", d)
	}
	if m.Base != 700_000 || m.Floor != 35_000 {
		t.Errorf("base %d floor %d, want 700000 and 5 %% of it", m.Base, m.Floor)
	}
	gold := limit.Rule{Capacity: 600, Refill: 5, PeriodSeconds: 60, Mode: limit.Shadow, OnError: limit.OnErrorDeny, Prefetch: true,
		Shards: 4, MaxCost: 150, HideHeaders: true, Revision: limit.Revision{Epoch: 1, Number: 2}}
	if d := cmp.Diff(gold, *s.Lookup("shop-b", "create-order").Rule); d != "" {
		t.Errorf("shop-b by its plan: %s", d)
	}
	report := limit.Rule{Capacity: 1000, PeriodSeconds: 1, Algorithm: limit.FixedWindow, Calendar: limit.CalendarDay, Shards: 1,
		Revision: limit.Revision{Epoch: 1, Number: 3}}
	if d := cmp.Diff(report, *s.Lookup("shop-a", "report").Rule); d != "" {
		t.Errorf("report: %s", d)
	}
	if id, ok := s.Tenant(hash, time.Now()); !ok || id != "shop-a" {
		t.Errorf("the key is tenant %q %v", id, ok)
	}
	regions := []snapshot.Region{{Name: "eu", Base: 700_000, Floor: 35_000}, {Name: "us", Base: 300_000, Floor: 20_000}}
	if d := cmp.Diff(regions, s.Regions(), cmpopts.EquateEmpty()); d != "" {
		t.Errorf("regions: %s", d)
	}
	if s.Revision() != (limit.Revision{Epoch: 1, Number: 6}) || s.Stale() {
		t.Errorf("revision %s stale %v", s.Revision(), s.Stale())
	}
}

func TestDeploymentWithoutRegionsIsOne(t *testing.T) {
	l := newLedger(t)
	l.exec(insertShopA)
	l.read()
	if m := l.holder.Load().Lookup("shop-a", "create-order"); m.Base != limit.Whole {
		t.Errorf("base %d, want everything", m.Base)
	}
}

// Every kind of change arrives as an increment, deletions too (request-path 79, 80, 83).
func TestIncrements(t *testing.T) {
	l := newLedger(t)
	hash := sha256.Sum256([]byte("k"))
	l.exec(insertShopA)
	l.exec(`INSERT INTO rate_limit_rule (tenant_id, route_id, capacity, refill_per_second) VALUES ('@gold', '*', 7, 7)`)
	l.exec(`INSERT INTO tenant (id) VALUES ('shop-a')`)
	l.exec(`INSERT INTO api_key (hash, tenant_id) VALUES ($1, 'shop-a')`, hash[:])
	l.read()
	capacity := func() int64 { return l.holder.Load().Lookup("shop-a", "create-order").Rule.Capacity }
	for _, step := range []struct {
		sql  string
		want int64
	}{
		{`UPDATE rate_limit_rule SET capacity = 10 WHERE tenant_id = 'shop-a'`, 10},
		{`DELETE FROM rate_limit_rule WHERE tenant_id = 'shop-a'`, 20},
		{`UPDATE tenant SET plan = 'gold'`, 7},
		{`INSERT INTO rate_limit_rule (tenant_id, route_id, capacity, refill_per_second) VALUES ('shop-a', 'create-order', 9, 9)`, 9},
		{`UPDATE rate_limit_rule SET tenant_id = 'shop-z' WHERE tenant_id = 'shop-a'`, 7},
		{`UPDATE tenant SET plan = ''`, 20},
	} {
		before := l.holder.Load()
		l.exec(step.sql)
		l.read()
		if got := capacity(); got != step.want {
			t.Errorf("after %s: capacity %d, want %d", step.sql, got, step.want)
		}
		at := l.holder.Load().Lookup("shop-a", "create-order").Revision
		if !at.Newer(before.Revision()) {
			t.Errorf("after %s: the key's revision %s is not above %s", step.sql, at, before.Revision())
		}
	}
	l.exec(`UPDATE api_key SET enabled = false`)
	l.read()
	if _, ok := l.holder.Load().Tenant(hash, time.Now()); ok {
		t.Error("the disabled key is still a tenant's")
	}
	l.exec(`UPDATE api_key SET enabled = true`)
	l.read()
	if _, ok := l.holder.Load().Tenant(hash, time.Now()); !ok {
		t.Error("the enabled key is no tenant's")
	}
	l.exec(`DELETE FROM tenant WHERE id = 'shop-a'`)
	l.read()
	if _, ok := l.holder.Load().Tenant(hash, time.Now()); ok {
		t.Error("the deleted tenant's key is still a tenant's")
	}
}

func TestParametersAndMovedKeys(t *testing.T) {
	l := newLedger(t)
	l.exec(`INSERT INTO region (name, base_share) VALUES ('eu', 700000), ('us', 300000)`)
	l.read()
	if l.holder.Load().Shadow() {
		t.Error("shadow is on by default")
	}
	l.exec(`INSERT INTO parameter (name, value) VALUES ('shadow', 'true'), ('floor', '0.2')`)
	l.exec(`INSERT INTO split (tenant_id, route_id, region, target_share, base_share, moved_at)
	        VALUES ('shop-a', 'create-order', 'eu', 600000, 800000, now()), ('shop-a', 'create-order', 'us', 400000, 200000, now())`)
	l.exec(`INSERT INTO split (tenant_id, route_id, region, target_share, base_share, moved_at)
	        VALUES ('shop-b', 'create-order', 'us', 1000000, 1000000, now())`)
	l.exec(`INSERT INTO split (tenant_id, route_id, region, target_share) VALUES ('shop-c', 'create-order', 'us', 1000000)`)
	l.read()
	s := l.holder.Load()
	if !s.Shadow() || s.Floor() != 140_000 || !s.FastLoop() {
		t.Errorf("shadow %v floor %d fast loop %v, want on, 20 %% of the base, and on", s.Shadow(), s.Floor(), s.FastLoop())
	}
	for _, c := range []struct {
		value string
		want  bool
	}{{"false", false}, {"true", true}, {`"off"`, true}, {"null", true}, {"false", false}} {
		l.exec(`INSERT INTO parameter (name, value) VALUES ('fast_loop', '` + c.value + `') ON CONFLICT (name) DO UPDATE SET value = excluded.value`)
		l.read()
		if got := l.holder.Load().FastLoop(); got != c.want {
			t.Errorf("fast_loop %s: %v, want %v", c.value, got, c.want)
		}
	}
	l.exec(`DELETE FROM parameter WHERE name = 'fast_loop'`)
	l.read()
	if !l.holder.Load().FastLoop() {
		t.Error("the fast loop stays off after its parameter is gone")
	}
	for _, c := range []struct {
		tenant string
		moved  bool
		base   limit.Share
	}{{"shop-a", true, 800_000}, {"shop-b", true, 0}, {"shop-c", false, 700_000}} {
		if m := s.Lookup(c.tenant, "create-order"); m.Moved != c.moved || m.Base != c.base {
			t.Errorf("%s: moved %v base %d, want %v %d", c.tenant, m.Moved, m.Base, c.moved, c.base)
		}
	}
	l.exec(`DELETE FROM parameter WHERE name = 'shadow'`)
	l.read()
	if l.holder.Load().Shadow() {
		t.Error("shadow stays on after its parameter is gone")
	}
	if s.Votes().Run() {
		t.Error("leases run although no domain is declared")
	}
	l.exec(`UPDATE region SET failure_domain = name; INSERT INTO parameter (name, value) VALUES ('control_domain', '"hub"')`)
	l.read()
	if v := l.holder.Load().Votes(); !v.Run() || v.Domain["control"] != "hub" || v.Domain["us"] != "us" {
		t.Errorf("votes %+v, want those of two regions and the control plane", v)
	}
	l.exec(`DELETE FROM parameter WHERE name = 'control_domain'`)
	l.read()
	if l.holder.Load().Votes().Run() {
		t.Error("two domains are enough for leases")
	}
}
