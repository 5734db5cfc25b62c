package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"partidor.dev/partidor/rebalancer/app"
	"partidor.dev/partidor/shared/limit"
	"partidor.dev/partidor/shared/testenv"
	"partidor.dev/partidor/shared/testenv/natsenv"
	"partidor.dev/partidor/shared/wire"
)

// desk is an operator in front of a running rebalancer.
type desk struct {
	url  string
	db   *pgx.Conn
	nats *natsenv.Server
}

func newDesk(t *testing.T) *desk {
	t.Helper()
	pg := testenv.StartPostgres(t)
	m, err := app.OpenMigration("", pg.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close() //nolint:errcheck // nothing is left to be written
	if s := m.Up(t.Context()); s.Err != nil {
		t.Fatal(s.Err)
	}
	d := &desk{db: pg.Conn(t), nats: natsenv.Start(t)}
	if _, err := d.db.Exec(t.Context(), `INSERT INTO region (name, base_share) VALUES ('eu', 700000), ('us', 300000)`); err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	d.url = "http://" + listener.Addr().String()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		done <- app.Run(ctx, app.Options{Listener: listener, LogOutput: io.Discard, Config: fmt.Appendf(nil,
			"postgres: {url: \"%s\"}\nnats: {urls: [\"%s\"]}\naccess: {anonymous: operator}\n", pg.URL, d.nats.URL)})
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return d
}

// run is one command; the operator answers with in.
func (d *desk) run(t *testing.T, in string, words ...string) (out, errOut string, code int) {
	t.Helper()
	var o, e bytes.Buffer
	root := newRoot(strings.NewReader(in), &o, &e)
	root.SetArgs(append([]string{"--server", d.url}, words...))
	err := root.ExecuteContext(t.Context())
	if err != nil {
		fmt.Fprintln(&e, err)
	}
	return o.String(), e.String(), exitCode(err)
}

// want runs a command and holds its exit code and output against what is expected.
func (d *desk) want(t *testing.T, code int, hold string, words ...string) string {
	t.Helper()
	out, errOut, got := d.run(t, "", words...)
	if got != code || !strings.Contains(out+errOut, hold) {
		t.Errorf("partidorctl %s: exit %d, want %d with %q\n%s%s", strings.Join(words, " "), got, code, hold, out, errOut)
	}
	return out
}

func TestRulesOnTheCommandLine(t *testing.T) {
	d := newDesk(t)
	d.want(t, exitNotFound, "Not found", "rules", "get", "shop-a", "create-order")
	d.want(t, exitOK, "+ capacity: 200", "rules", "set", "shop-a", "create-order", "--capacity", "200", "--refill", "100", "--dry-run")
	d.want(t, exitNotFound, "", "rules", "get", "shop-a", "create-order")
	d.want(t, exitUsage, "--yes", "rules", "set", "shop-a", "create-order", "--capacity", "200", "--refill", "100")
	d.want(t, exitOK, "done", "rules", "set", "shop-a", "create-order", "--capacity", "200", "--refill", "100", "--yes", "--reason", "launch")
	d.want(t, exitOK, "200 tokens, 100/s", "rules", "get")
	d.want(t, exitOK, "~ capacity: 200 -> 300", "rules", "set", "shop-a", "create-order", "--capacity", "300", "--yes")
	d.want(t, exitOK, "no change", "rules", "set", "shop-a", "create-order", "--capacity", "300", "--yes")
	d.want(t, exitOK, "+ max_cost: 40", "rules", "set", "shop-a", "upload", "--capacity", "300", "--refill", "100", "--max-cost", "40", "--yes")
	d.want(t, exitOK, "300 tokens, 100/s, at most 40 each", "rules", "get")
	d.want(t, exitUsage, "max_cost: 301, must be from 1 to 300", "rules", "set", "shop-a", "upload", "--max-cost", "301", "--yes")
	d.want(t, exitOK, "- max_cost: 40", "rules", "set", "shop-a", "upload", "--max-cost", "0", "--yes")
	d.want(t, exitOK, "+ max_cost: 40", "rules", "rollback", "shop-a", "upload", "--yes")
	d.want(t, exitUsage, "mode: block", "rules", "set", "shop-a", "create-order", "--capacity", "0", "--yes")
	d.want(t, exitUsage, "algorithm", "rules", "set", "shop-a", "x", "--algorithm", "magic", "--yes")
	d.want(t, exitOK, "launch", "rules", "history", "shop-a", "create-order")
	d.want(t, exitOK, "~ capacity: 300 -> 200", "rules", "rollback", "shop-a", "create-order", "--yes")
	var rule struct{ Capacity int }
	if err := json.Unmarshal([]byte(d.want(t, exitOK, "", "rules", "get", "shop-a", "create-order", "-o", "json")), &rule); err != nil || rule.Capacity != 200 {
		t.Errorf("as JSON: %+v, %v", rule, err)
	}
	d.want(t, exitOK, "a rule of this tenant for this route", "explain", "shop-a", "create-order")
	d.want(t, exitOK, "- capacity: 200", "rules", "delete", "shop-a", "create-order", "--yes")
	d.want(t, exitUsage, "accepts", "rules", "delete", "shop-a")
	d.want(t, exitUsage, "--output", "rules", "get", "-o", "xml")
}

func TestApplyExportAndImport(t *testing.T) {
	d := newDesk(t)
	file := filepath.Join(t.TempDir(), "rules.yaml")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("rules:\n- {tenant: a, route: r, capacity: 10, refill_per_second: 1}\n- {tenant: b, route: r, capacity: 0, refill_per_second: 1}\n")
	d.want(t, exitUsage, "rules.yaml:3: rules[1].capacity", "rules", "apply", "-f", file, "--yes")
	d.want(t, exitOK, "", "rules", "get", "-o", "json")
	write("rules:\n- {tenant: a, route: r, capacity: 10, refill_per_second: 1}\n- {tenant: b, route: r, capacity: 20, refill_per_second: 5, refill_period_seconds: 60, max_cost: 4, expires_at: 2099-01-01T00:00:00Z}\n- {tenant: '*', route: r, algorithm: fixed_window, window: day, capacity: 9}\n")
	d.want(t, exitDiffers, "3 to create", "rules", "diff", "-f", file)
	d.want(t, exitOK, "3 to create", "rules", "apply", "-f", file, "--yes")
	d.want(t, exitOK, "3 unchanged", "rules", "diff", "-f", file)
	export := d.want(t, exitOK, "", "rules", "export")
	write(export)
	d.want(t, exitOK, "0 to create, 0 to change, 0 to delete, 3 unchanged", "rules", "diff", "-f", file, "--prune")
	write(strings.Replace(export, "max_cost: 4", "max_cost: 5", 1))
	d.want(t, exitDiffers, "~ b/r: ~ max_cost: 4 -> 5", "rules", "diff", "-f", file)
	write("rules:\n- {tenant: a, route: r, capacity: 11, refill_per_second: 1}\n")
	d.want(t, exitDiffers, "0 to create, 1 to change, 2 to delete", "rules", "diff", "-f", file, "--prune")
	d.want(t, exitOK, "~ a/r: ~ capacity: 10 -> 11", "rules", "apply", "-f", file, "--prune", "--yes")
	if got := d.want(t, exitOK, "", "rules", "export"); !strings.Contains(got, "capacity: 11") || strings.Contains(got, "tenant: b") {
		t.Errorf("after a pruning apply:\n%s", got)
	}
	write("plugins:\n- name: rate-limiting\n  consumer: shop\n  config: {minute: 5, limit_by: consumer}\n- name: rate-limiting\n  config: {minute: 5, limit_by: ip}\n")
	if out := d.want(t, exitOK, "lost: plugins[1]: counts by ip", "rules", "import", "--from", "kong", file); !strings.Contains(out, "window_seconds: 60") {
		t.Errorf("import:\n%s", out)
	}
}

func TestEverythingElse(t *testing.T) {
	d := newDesk(t)
	d.want(t, exitOK, "+ plan: gold", "plans", "assign", "shop-a", "gold", "--yes")
	d.want(t, exitOK, "", "rules", "set", "@gold", "*", "--capacity", "5", "--refill", "1", "--yes")
	d.want(t, exitOK, "gold  1        1", "plans", "list")
	d.want(t, exitOK, "gold", "plans", "tenants", "--plan", "gold")
	key := strings.TrimSpace(d.want(t, exitOK, "shown this once", "keys", "create", "shop-a", "--label", "till", "--yes"))
	if !strings.HasPrefix(key, "ptdr_") {
		t.Errorf("key %q", key)
	}
	var keys []struct{ SHA256 string }
	if err := json.Unmarshal([]byte(d.want(t, exitOK, "", "keys", "list", "-o", "json")), &keys); err != nil || len(keys) != 1 {
		t.Fatalf("keys %+v, %v", keys, err)
	}
	d.want(t, exitOK, "ptdr_", "keys", "rotate", keys[0].SHA256, "--grace", "1h", "--yes")
	d.want(t, exitOK, "~ enabled: true -> false", "keys", "revoke", keys[0].SHA256, "--yes")

	d.want(t, exitOK, `+ shares: {"eu":400000}`, "splits", "pin", "shop-a", "r", "eu=40%", "--for", "1h", "--yes", "--reason", "drill")
	d.want(t, exitUsage, "no such region", "splits", "pin", "shop-a", "r", "mars=40%", "--yes")
	d.want(t, exitOK, "40%", "splits", "show", "shop-a", "r")
	d.want(t, exitOK, "drill", "splits", "history", "shop-a", "r")
	d.want(t, exitOK, "", "splits", "set", "shop-a", "r", "eu=50%", "us=50%", "--yes")
	d.want(t, exitOK, "", "splits", "rollback", "shop-a", "r", "--yes")
	d.want(t, exitOK, "", "splits", "unpin", "shop-a", "r", "--yes")

	d.want(t, exitOK, "over the last 6 h", "rebalance", "plan", "--with", "floor=30%", "--over", "6")
	d.want(t, exitUsage, "cycle", "rebalance", "plan", "--with", "cycle=1s")
	d.want(t, exitOK, "asked for", "rebalance", "run")
	d.want(t, exitOK, "+ value: true", "rebalance", "pause", "--yes")
	d.want(t, exitOK, "~ value: true -> false", "rebalance", "resume", "--yes")
	d.want(t, exitOK, "+ value: 0.1", "rebalance", "params", "set", "floor", "10%", "--yes")
	d.want(t, exitOK, "0.1", "rebalance", "params")
	d.want(t, exitOK, "- value: 0.1", "rebalance", "params", "reset", "floor", "--yes")
	d.want(t, exitOK, "", "shadow", "on", "--yes")

	d.want(t, exitOK, "us\tactive", "__complete", "regions", "drain", "")
	d.want(t, exitOK, "deadband\t", "__complete", "rebalance", "params", "set", "")
	d.want(t, exitOK, "sliding_window_log", "__complete", "rules", "set", "a", "r", "--algorithm", "")
	d.want(t, exitOK, "us", "regions", "list")
	d.want(t, exitUsage, "must be exactly", "regions", "set", "eu=50%", "us=30%", "--yes")
	d.want(t, exitOK, "+ ap: 20%", "regions", "set", "eu=50%", "us=30%", "ap=20%", "--yes")
	d.want(t, exitOK, "+ domain: rack-1", "regions", "change", "eu", "--domain", "rack-1", "--floor", "10%", "--yes", "--reason", "votes")
	d.want(t, exitOK, "~ floor: 100000 -> 50000", "regions", "change", "eu", "--floor", "5%", "--yes")
	d.want(t, exitUsage, "floor: 600000, must not be above the base share", "regions", "change", "eu", "--floor", "60%", "--yes")
	d.want(t, exitUsage, "nothing to change", "regions", "change", "eu")
	d.want(t, exitOK, "not every region has declared", "regions", "voters")
	d.want(t, exitOK, "- floor: 50000", "regions", "change", "eu", "--floor", "0", "--yes")
	file := filepath.Join(t.TempDir(), "regions.yaml")
	if err := os.WriteFile(file, []byte("regions: {eu: {base: 50%, floor: 4%, domain: rack-1}, us: {base: 30%, domain: rack-2}, ap: {base: 20%, domain: rack-2}}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	d.want(t, exitOK, "+ us domain: rack-2", "regions", "apply", "-f", file, "--yes")
	d.want(t, exitOK, "no change", "regions", "apply", "-f", file, "--yes")
	d.want(t, exitOK, "2 domains, at least 3", "regions", "voters")
	d.want(t, exitOK, "", "rebalance", "params", "set", "control_domain", "rack-3", "--yes")
	d.want(t, exitOK, "leases run: 3 domains", "regions", "voters")
	d.want(t, exitOK, "~ state: active -> draining", "regions", "drain", "us", "--yes")
	d.want(t, exitOK, "WARNING", "regions", "declare-dead", "us", "--yes")
	d.want(t, exitOK, "~ state: dead -> active", "regions", "restore", "us", "--yes")
	d.want(t, exitOK, "leader", "status")
	d.want(t, exitOK, "anonymous", "history", "--kind", "parameter,region")
}

// What gateways say of a key is what explain shows.
func TestExplainAKey(t *testing.T) {
	d := newDesk(t)
	d.want(t, exitOK, "", "rules", "set", "shop-a", "create-order", "--capacity", "200", "--refill", "100", "--yes")
	conn := d.nats.Conn(t)
	header := wire.Header{Region: "us", Instance: "us-1", Started: 1}
	sent := 0
	say := func() {
		sent++
		header.Sequence = uint64(sent)
		lender := header
		lender.Region, lender.Instance = "eu", "eu-1"
		for subject, m := range map[string]wire.Message{
			wire.SubjectHeartbeat("eu"): &wire.Heartbeat{Header: lender, Rules: limit.Revision{Epoch: 1, Number: 1}},
			wire.SubjectAck("eu", "us"): &wire.Ack{Header: header, To: "eu", Rows: []wire.AckRow{{Tenant: "shop-a", Route: "create-order", Loan: int64(5 * sent)}}},
			wire.SubjectHeartbeat("us"): &wire.Heartbeat{Header: header, Rules: limit.Revision{Epoch: 1, Number: 1}, Degraded: true},
			wire.SubjectUsage("us"): &wire.Usage{Header: header, ElapsedMillis: int64(1000 * sent), Keys: []wire.KeyUsage{{Tenant: "shop-a", Route: "create-order",
				Admitted: uint64(sent), Refused: 1, Share: limit.Share(300_000 + sent), Tokens: 1.5, Sources: []uint32{1, 3},
				Refusal: &wire.Refusal{Outcome: "refused", Source: "prefetch", Cost: 3, Tokens: 1.5, WaitMillis: 50}}}},
		} {
			data, err := wire.Encode(m)
			if err != nil {
				t.Fatal(err)
			}
			if err := conn.Publish(subject, data); err != nil {
				t.Fatal(err)
			}
		}
	}
	var out string
	testenv.Eventually(t, time.Minute, func() error {
		say()
		if out, _, _ = d.run(t, "", "explain", "shop-a", "create-order"); !strings.Contains(out, "share of us moved") || !strings.Contains(out, "eu lent") {
			return fmt.Errorf("no moves of shares, or no loans:\n%s", out)
		}
		return nil
	})
	for _, want := range []string{"last refusal in us", "a request of cost 3 at gateway us-1, decided by prefetch: the bucket held 1.5 of the 3 tokens",
		"waiting 0.05 s would have admitted it", "prefetch 75%, redis 25%", "us      us-1     1.1    degraded", "TOKENS", "tokens to us"} {
		if !strings.Contains(out, want) {
			t.Errorf("explain shows no %q:\n%s", want, out)
		}
	}
}

func TestAnswersAndConflicts(t *testing.T) {
	d := newDesk(t)
	var o, e bytes.Buffer
	ask := func(in string) error {
		tool := &tool{in: strings.NewReader(in), out: &o, err: &e, terminal: true, output: "table",
			connection: connection{server: d.url, timeout: 10 * time.Second}}
		c, err := tool.open()
		if err != nil {
			t.Fatal(err)
		}
		return tool.change(t.Context(), c, "rule", call{method: "PUT", path: path("rules", "a", "r"), body: item{"mode": "block"}})
	}
	if code := exitCode(ask("n\n")); code != exitDeclined {
		t.Errorf("answered no: exit %d", code)
	}
	if code := exitCode(ask("")); code != exitDeclined {
		t.Errorf("no answer: exit %d", code)
	}
	if err := ask("y\n"); err != nil {
		t.Errorf("answered yes: %v", err)
	}
	if _, _, code := (&desk{url: "http://127.0.0.1:1"}).run(t, "", "status"); code != exitFailed {
		t.Errorf("nobody there: exit %d", code)
	}
	if _, _, code := (&desk{url: "localhost"}).run(t, "", "status"); code != exitUsage {
		t.Errorf("no URL: exit %d", code)
	}
}
