package postgres_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"partidor.dev/partidor/deploy/internal/keys"
	"partidor.dev/partidor/rebalancer/app"
	"partidor.dev/partidor/shared/testenv"
)

// ledger is a server that is set up by the shipped files, as an administrator does it.
type ledger struct {
	server *testenv.PostgresServer
	dir    string // secrets
}

func prepare(t *testing.T) *ledger {
	t.Helper()
	for _, script := range []string{"init.sh", "roles.sql", "backup", "restore", "restored.sql"} {
		if _, err := os.Stat(script); err != nil { // looked at here, so that a change is a new test
			t.Fatal(err)
		}
	}
	l := &ledger{server: testenv.StartPostgresServer(t), dir: t.TempDir()}
	plan := keys.Plan{Dir: l.dir, Hosts: []string{"127.0.0.1"}, Postgres: fmt.Sprintf("127.0.0.1:%d", l.server.Port),
		Options: "sslmode=verify-full&sslrootcert=" + filepath.Join(l.dir, "ca.crt")}
	if err := keys.Make(plan, ""); err != nil {
		t.Fatal(err)
	}
	for _, end := range []string{".crt", ".key"} {
		l.install(t, filepath.Join(l.dir, "postgres"+end), "server"+end, "")
	}
	// The tests' own administrator comes over the network; everything else is as shipped.
	l.install(t, "pg_hba.conf", "pg_hba.conf", "host all app 127.0.0.1/32 trust\n")
	for _, sql := range []string{"ALTER SYSTEM SET ssl = on", "CREATE DATABASE partidor"} {
		l.exec(t, l.admin("postgres"), sql)
	}
	l.server.Restart(t)
	l.run(t, nil, "./init.sh")
	return l
}

// install puts a file into the data directory, owned by the server's user.
func (l *ledger) install(t *testing.T, from, name, head string) {
	t.Helper()
	data, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(l.server.Dir, name)
	if err := os.WriteFile(path, append([]byte(head), data...), 0o600); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(l.server.Dir)
	if err != nil {
		t.Fatal(err)
	}
	owner := info.Sys().(*syscall.Stat_t)
	if err := os.Chown(path, int(owner.Uid), int(owner.Gid)); err != nil {
		t.Fatal(err)
	}
}

func (l *ledger) admin(database string) string {
	return fmt.Sprintf("postgres://app@127.0.0.1:%d/%s?sslmode=disable", l.server.Port, database)
}

// url is how the program with that role is told to connect.
func (l *ledger) url(t *testing.T, role string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(l.dir, "ledger-"+role+".url"))
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(data))
}

// run runs one of the shipped scripts and returns what it printed.
func (l *ledger) run(t *testing.T, fails *error, argv ...string) string {
	t.Helper()
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Env = append(os.Environ(), "PARTIDOR_SECRETS="+l.dir, "PGHOST=127.0.0.1", fmt.Sprintf("PGPORT=%d", l.server.Port), "PGUSER=app", "PGDATABASE=partidor")
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	if fails != nil {
		*fails = err
	} else if err != nil {
		t.Fatalf("%v: %v\n%s", argv, err, &out)
	}
	return out.String()
}

func (l *ledger) exec(t *testing.T, url, sql string) {
	t.Helper()
	c := connect(t, url)
	if _, err := c.Exec(context.Background(), sql); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

func connect(t *testing.T, url string) *pgx.Conn {
	t.Helper()
	c, err := pgx.Connect(context.Background(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close(context.Background()) })
	return c
}

func one[T any](t *testing.T, c *pgx.Conn, sql string) (v T) {
	t.Helper()
	if err := c.QueryRow(context.Background(), sql).Scan(&v); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return v
}

func (l *ledger) migrate(t *testing.T) {
	t.Helper()
	m, err := app.OpenMigration("", l.url(t, "owner"))
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close() //nolint:errcheck // nothing is left to be written
	if steps := m.Up(context.Background()); steps.Err != nil {
		t.Fatalf("migrate as the owner, who is no superuser: %v", steps.Err)
	}
}

const seed = `
INSERT INTO region (name, base_share) VALUES ('eu', 700000), ('us', 300000);
INSERT INTO tenant (id) VALUES ('shop-a');
INSERT INTO api_key (hash, tenant_id) VALUES (sha256(convert_to('plain-text-of-the-key', 'UTF8')), 'shop-a');
INSERT INTO rate_limit_rule (tenant_id, route_id, capacity, refill_per_second) VALUES ('shop-a', 'create-order', 200, 100);`

// Each login can do its work over TLS, and is refused everything else.
func TestLogins(t *testing.T) {
	l := prepare(t)
	l.run(t, nil, "./init.sh") // a second time changes nothing
	l.migrate(t)
	l.exec(t, l.url(t, "operator"), seed)
	conns := map[string]*pgx.Conn{}
	for _, role := range []string{"owner", "rebalancer", "gateway", "operator", "backup"} {
		conns[role] = connect(t, l.url(t, role))
	}
	for _, c := range []struct {
		role, sql string
		allowed   bool
	}{
		{"gateway", `SELECT count(*) FROM rate_limit_rule, tenant, api_key, region, split, parameter, tombstone, ledger_revision`, true},
		{"gateway", `LISTEN partidor_changed`, true},
		{"gateway", `SET default_transaction_read_only = off; UPDATE rate_limit_rule SET capacity = 1000000`, false},
		{"gateway", `INSERT INTO api_key (hash, tenant_id) VALUES ('\x00', 'shop-a')`, false},
		{"gateway", `UPDATE region SET base_share = 1000000`, false},
		{"gateway", `DELETE FROM split`, false},
		{"gateway", `SELECT * FROM history`, false},
		{"gateway", `SELECT * FROM leader`, false},
		{"gateway", `CREATE TABLE public.x (i int)`, false},
		{"gateway", `CREATE TEMP TABLE x (i int)`, false},
		{"gateway", `SELECT * FROM pg_authid`, false},
		{"gateway", `SET ROLE partidor_rebalancer`, false},
		{"gateway", `COPY rate_limit_rule TO PROGRAM 'cat'`, false},
		{"rebalancer", `SELECT ledger_observe_timeline()`, true},
		{"rebalancer", `UPDATE rate_limit_rule SET capacity = 300, reason = 'test'`, true},
		{"rebalancer", `UPDATE leader SET renewals = renewals + 1`, true},
		{"rebalancer", `SELECT count(*) FROM history`, true},
		{"rebalancer", `INSERT INTO history (kind, operation, actor, at) VALUES ('rule', 'update', 'x', now() - interval '8 days')`, true},
		{"rebalancer", `DELETE FROM history WHERE at < now() - interval '7 days'`, true}, // ageing
		{"rebalancer", `DELETE FROM history WHERE at > now() - interval '1 day'`, false},
		{"rebalancer", `UPDATE history SET actor = 'somebody else'`, false},
		{"rebalancer", `UPDATE rule_history SET at = now() - interval '8 days'`, false},
		{"rebalancer", `DELETE FROM rule_history`, false},
		{"rebalancer", `DROP TRIGGER history_stays ON history`, false},
		{"rebalancer", `DROP TABLE history`, false},
		{"rebalancer", `ALTER TABLE rate_limit_rule DISABLE TRIGGER ALL`, false},
		{"rebalancer", `TRUNCATE history`, false},
		{"rebalancer", `UPDATE ledger_revision SET number = 0`, false},
		{"rebalancer", `CREATE TABLE public.x (i int)`, false},
		{"operator", `UPDATE rate_limit_rule SET capacity = 400`, true},
		{"operator", `DELETE FROM history`, false},
		{"operator", `UPDATE split SET target_share = 0`, false},
		{"operator", `UPDATE leader SET term = 1`, false},
		{"backup", `SELECT count(*) FROM history`, true},
		{"backup", `UPDATE rate_limit_rule SET capacity = 1`, false},
		{"owner", `CREATE TABLE public.x (i int); DROP TABLE public.x`, true},
		{"owner", `CREATE ROLE x SUPERUSER`, false},
		{"owner", `CREATE DATABASE x`, false},
	} {
		_, err := conns[c.role].Exec(context.Background(), c.sql)
		var pg *pgconn.PgError
		refused := errors.As(err, &pg) && (pg.Code == "42501" || pg.Code == "25006") // no privilege, read only
		if refused == c.allowed || err != nil && !refused {
			t.Errorf("%s: %s: %v, allowed should be %v", c.role, c.sql, err, c.allowed)
		}
	}
}

// Connections without TLS, with a wrong password or to another database are refused.
func TestConnections(t *testing.T) {
	l := prepare(t)
	good := l.url(t, "gateway")
	connect(t, good)
	plain := strings.Replace(good, "sslmode=verify-full", "sslmode=disable", 1)
	u, err := url.Parse(good)
	if err != nil {
		t.Fatal(err)
	}
	u.User = url.UserPassword(u.User.Username(), "wrong")
	for name, bad := range map[string]string{
		"without TLS":      plain,
		"wrong password":   u.String(),
		"another database": strings.Replace(good, "/partidor?", "/postgres?", 1),
	} {
		if c, err := pgx.Connect(context.Background(), bad); err == nil {
			_ = c.Close(context.Background())
			t.Errorf("%s: let in", name)
		}
	}
}

// A backup is taken while the ledger lives, holds no key that could be used, and comes back whole in another cluster, as something
// newer than all that gateways have seen.
func TestBackupAndRestore(t *testing.T) {
	from := prepare(t)
	from.migrate(t)
	from.exec(t, from.url(t, "operator"), seed)
	from.exec(t, from.url(t, "rebalancer"), `INSERT INTO split (tenant_id, route_id, region, target_share, base_share, moved_at) VALUES
		('shop-a', 'create-order', 'eu', 600000, 700000, now()), ('shop-a', 'create-order', 'us', 400000, 300000, now())`)
	file := filepath.Join(t.TempDir(), "ledger.dump")
	from.run(t, nil, "./backup", from.url(t, "backup"), file)
	dump, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(dump, []byte("plain-text-of-the-key")) || strings.Contains(from.run(t, nil, "pg_restore", "-f", "-", file), "plain-text-of-the-key") {
		t.Error("a backup holds an API key that could be used")
	}
	old := connect(t, from.admin("partidor"))
	what := `SELECT string_agg(t::text, E'\n' ORDER BY t::text) FROM (
		SELECT to_jsonb(r)::text t FROM rate_limit_rule r UNION ALL SELECT to_jsonb(r)::text FROM region r UNION ALL SELECT to_jsonb(r)::text FROM split r
		UNION ALL SELECT to_jsonb(r)::text FROM api_key r UNION ALL SELECT to_jsonb(r)::text FROM history r UNION ALL SELECT to_jsonb(r)::text FROM leader r) x`
	before, epoch := one[string](t, old, what), one[int64](t, old, `SELECT epoch FROM ledger_revision`)

	to := prepare(t)
	to.migrate(t)
	to.exec(t, to.url(t, "operator"), `INSERT INTO tenant (id) VALUES ('must-go')`)
	for i := range 2 { // the second time into what the first has left
		to.run(t, nil, "./restore", to.url(t, "owner"), file)
		restored := connect(t, to.admin("partidor"))
		if got := one[string](t, restored, what); got != before {
			t.Errorf("restore %d: the ledger was\n%s\nand is\n%s", i+1, before, got)
		}
		if n := one[int](t, restored, `SELECT count(*) FROM tenant WHERE id = 'must-go'`); n != 0 {
			t.Errorf("restore %d: what was there before is mixed in", i+1)
		}
		now := one[int64](t, restored, `SELECT epoch FROM ledger_revision`)
		if now <= epoch {
			t.Errorf("restore %d: epoch %d, must be above %d", i+1, now, epoch)
		}
	}
	// Everybody can work as before: rights came along, revisions go on, migrations have nothing to do.
	to.migrate(t)
	to.exec(t, to.url(t, "operator"), `UPDATE rate_limit_rule SET capacity = 500`)
	if n := one[int](t, connect(t, to.url(t, "gateway")), `SELECT capacity FROM rate_limit_rule`); n != 500 {
		t.Errorf("a gateway reads %d", n)
	}

	// A file that is cut short changes nothing.
	if err := os.WriteFile(file, dump[:len(dump)/2], 0o600); err != nil {
		t.Fatal(err)
	}
	var failed error
	to.run(t, &failed, "./restore", to.url(t, "owner"), file)
	if n := one[int](t, connect(t, to.url(t, "gateway")), `SELECT capacity FROM rate_limit_rule`); failed == nil || n != 500 {
		t.Errorf("after half a backup: error %v, capacity %d", failed, n)
	}
}
