package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"partidor.dev/partidor/shared/testenv"
)

const (
	// cycle is the shortest that the rebalancer accepts as a parameter.
	cycle   = 10 * time.Second
	patient = 30 * time.Second
	route   = "create-order"
)

// deployment is everything that stands in two regions.
type deployment struct {
	t          *testing.T // whose end ends everything
	dir        string
	regions    map[string]*region
	postgres   *testenv.Postgres
	db         *pgx.Conn
	nats       *testenv.Program
	natsURL    string
	rebalancer *testenv.Program
	upstream   *httptest.Server
	otlp       *testenv.OTLP
}

// region is a Redis and the gateways in front of it.
type region struct {
	name     string
	redis    *testenv.Redis
	gateways []*gateway
}

// gateway is one process and its two ports.
type gateway struct {
	*testenv.Program
	url, admin string
}

// deploy starts it all, in the order in which an operator would.
func deploy(t *testing.T) *deployment {
	t.Helper()
	d := &deployment{t: t, dir: t.TempDir(), regions: map[string]*region{}, otlp: testenv.StartOTLP(t), postgres: testenv.StartPostgres(t)}
	d.upstream = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Upstream-Saw-Traceparent", r.Header.Get("traceparent"))
		_, _ = fmt.Fprintln(w, "order taken")
	}))
	t.Cleanup(d.upstream.Close)
	d.startNATS(t)
	d.migrate(t)
	d.seed(t)
	d.startRebalancer(t)
	for _, name := range []string{"eu", "us"} {
		r := &region{name: name, redis: testenv.StartRedis(t, testenv.RedisAppendOnly())}
		d.regions[name] = r
		for i := range 2 {
			r.gateways = append(r.gateways, d.startGateway(t, r, fmt.Sprintf("%s-%d", name, i+1)))
		}
	}
	for _, g := range d.gateways() {
		d.awaitReady(t, g)
	}
	t.Cleanup(func() { d.report(t) })
	return d
}

// report logs, for a failed test, what the gateways count about moving rights.
func (d *deployment) report(t *testing.T) {
	if !t.Failed() {
		return
	}
	for _, g := range d.gateways() {
		resp, err := http.Get(g.admin + "/metrics")
		if err != nil {
			t.Logf("%s: %v", g.admin, err)
			continue
		}
		for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
			if line := lines.Text(); strings.HasPrefix(line, "partidor_transfer") || strings.HasPrefix(line, "partidor_rights") {
				t.Logf("%s: %s", g.admin, line)
			}
		}
		resp.Body.Close()
	}
}

func (d *deployment) gateways() []*gateway {
	return append(append([]*gateway(nil), d.regions["eu"].gateways...), d.regions["us"].gateways...)
}

func (d *deployment) startNATS(t *testing.T) {
	t.Helper()
	if d.natsURL == "" {
		d.natsURL = fmt.Sprintf("nats://127.0.0.1:%d", testenv.FreePort(t))
	}
	port := d.natsURL[strings.LastIndexByte(d.natsURL, ':')+1:]
	d.nats = testenv.StartProgram(t, []string{program("nats-server"), "-a", "127.0.0.1", "-p", port})
	d.nats.AwaitLine(patient, func(line []byte) bool { return strings.Contains(string(line), "Server is ready") })
}

func (d *deployment) migrate(t *testing.T) {
	t.Helper()
	p := testenv.StartProgram(t, []string{program("rebalancer"), "migrate", "up", "--database-url", d.postgres.URL})
	if status := p.Wait(patient); status != 0 {
		t.Fatalf("migrate: exit status %d\n%s", status, p.Output())
	}
}

// seed fills the ledger as people do, by SQL. Each tenant's API key is its name with "key-" before it.
func (d *deployment) seed(t *testing.T) {
	t.Helper()
	d.db = d.postgres.Conn(t)
	d.exec(t, `INSERT INTO region (name, base_share, published_share) VALUES ('eu', 700000, 700000), ('us', 300000, 300000)`)
	// The statement that always has to work, as it is written in the design.
	d.exec(t, `INSERT INTO rate_limit_rule (tenant_id, route_id, capacity, refill_per_second) VALUES ('shop-a', 'create-order', 200, 100);`)
	d.exec(t, `INSERT INTO rate_limit_rule (tenant_id, route_id, capacity, refill_per_second) VALUES
		('flood', 'create-order', 200, 100), ('swing', 'create-order', 200, 100),
		('edit', 'create-order', 50, 5), ('outage', 'create-order', 100, 50)`)
	d.exec(t, `INSERT INTO rate_limit_rule (tenant_id, route_id, capacity, refill_per_second, refill_period_seconds) VALUES
		('curl', 'create-order', 2, 1, 30)`)
	for _, tenant := range []string{"shop-a", "curl", "flood", "swing", "edit", "outage", "norule"} {
		d.exec(t, `INSERT INTO tenant (id) VALUES ($1)`, tenant)
		d.exec(t, `INSERT INTO api_key (hash, tenant_id) VALUES (sha256(convert_to($1, 'UTF8')), $2)`, "key-"+tenant, tenant)
	}
}

func (d *deployment) exec(t *testing.T, sql string, args ...any) {
	t.Helper()
	if _, err := d.db.Exec(context.Background(), sql, args...); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

// write puts a configuration file into the deployment's directory.
func (d *deployment) write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(d.dir, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// tracing sends spans to the deployment's collector. Gateways trace only what comes in traced.
func (d *deployment) tracing(sampler string) []string {
	return []string{
		"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=" + d.otlp.Endpoint, "OTEL_EXPORTER_OTLP_PROTOCOL=grpc",
		"OTEL_BSP_SCHEDULE_DELAY=200", "OTEL_TRACES_SAMPLER=" + sampler, "OTEL_TRACES_SAMPLER_ARG=0",
	}
}

func (d *deployment) startRebalancer(t *testing.T) {
	t.Helper()
	path := d.write(t, "rebalancer.yaml", fmt.Sprintf(`
listen: 127.0.0.1:0
instance: rebalancer-1
postgres: {url: %q}
nats: {urls: [%q]}
access: {anonymous: viewer}
parameters: {cycle: %s, mean_half_life: 3s, peak_half_life: 10s}
`, d.postgres.URL, d.natsURL, cycle))
	d.rebalancer = testenv.StartProgram(t, []string{program("rebalancer"), "-config", path}, d.tracing("always_on")...)
	d.rebalancer.AwaitLine(patient, says("leading", nil))
}

// startGateway starts one gateway on ports of its choice. Its decisions may take longer than the usual 5 ms, since
// everything shares this machine's processors.
func (d *deployment) startGateway(t *testing.T, r *region, instance string) *gateway {
	t.Helper()
	path := d.write(t, instance+".yaml", fmt.Sprintf(`
listen: 127.0.0.1:0
admin: {listen: "127.0.0.1:0"}
region: %s
instance: %s
upstreams:
  orders: {targets: [{url: %q}]}
routes:
  - {id: create-order, methods: [POST], path: /orders, upstream: orders}
redis: {addresses: [%q]}
nats: {urls: [%q]}
postgres: {url: %q}
snapshot: {file: %q}
decision: {deadline: 500ms}
usage: {interval: 1s}
`, r.name, instance, d.upstream.URL, r.redis.Addr, d.natsURL, d.postgres.URL, filepath.Join(d.dir, instance+".snapshot")))
	g := &gateway{Program: testenv.StartProgram(t, []string{program("gateway"), "-config", path}, d.tracing("parentbased_traceidratio")...)}
	var at struct{ Listen, Admin string }
	g.AwaitLine(patient, says("serving", &at))
	g.url, g.admin = "http://"+at.Listen, "http://"+at.Admin
	return g
}

// says accepts a log line with the given message and reads its attributes into into.
func says(message string, into any) func(line []byte) bool {
	return func(line []byte) bool {
		var head struct{ Msg string }
		if json.Unmarshal(line, &head) != nil || head.Msg != message {
			return false
		}
		return into == nil || json.Unmarshal(line, into) == nil
	}
}

func (d *deployment) awaitReady(t *testing.T, g *gateway) {
	t.Helper()
	testenv.Eventually(t, patient, func() error {
		resp, err := http.Get(g.admin + "/readyz")
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			return fmt.Errorf("%s: /readyz answers %s", g.url, resp.Status)
		}
		return nil
	})
}
