package e2e

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/redis/go-redis/v9"

	"partidor.dev/partidor/shared/testenv"
	"partidor.dev/partidor/shared/testenv/otlpenv"
)

const (
	// cycle is the shortest that the rebalancer accepts as a parameter.
	cycle   = 10 * time.Second
	patient = 90 * time.Second // nothing takes so long but on a machine that is busy otherwise
	route   = "create-order"
)

// place is where processes find NATS and PostgreSQL.
type place struct{ nats, postgres string }

// deployment is everything that stands in some regions, and the control plane.
type deployment struct {
	t          *testing.T // whose end ends everything
	dir        string
	regions    map[string]*region
	postgres   *testenv.Postgres
	db         *pgx.Conn
	nats       *testenv.Program // the one of all regions, where they share one
	control    place            // the rebalancer's
	rebalancer *testenv.Program
	// rebalancers are all that were started, also those that have ended.
	rebalancers []*testenv.Program
	upstream    *httptest.Server
	otlp        *otlpenv.Collector
	decisions   []string // the decision logs of all gateways, also of those that have ended
}

// region is a Redis, or a cluster of them, and the gateways in front of it.
type region struct {
	place
	name     string
	redis    *testenv.Redis
	cluster  *testenv.RedisCluster // instead of redis
	mu       sync.Mutex            // for the fields below, once there is traffic
	gateways []*gateway
	client   redis.UniversalClient // of store
}

// gateway is one process and its two ports.
type gateway struct {
	*testenv.Program
	instance   string
	url, admin string
}

// deploy starts it all, in the order in which an operator would.
func deploy(t *testing.T) *deployment {
	t.Helper()
	d := newDeployment(t, testenv.StartPostgres(t))
	d.startNATS(t)
	d.control.postgres = d.postgres.URL
	d.migrate(t)
	d.seed(t)
	d.startRebalancer(t)
	for _, name := range []string{"eu", "us"} {
		r := &region{place: d.control, name: name, redis: testenv.StartRedis(t, testenv.RedisAppendOnly())}
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

// newDeployment is one of nothing but a collector of telemetry and an upstream.
func newDeployment(t *testing.T, postgres *testenv.Postgres) *deployment {
	t.Helper()
	d := &deployment{t: t, dir: t.TempDir(), regions: map[string]*region{}, otlp: otlpenv.Start(t), postgres: postgres}
	d.upstream = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Upstream-Saw-Traceparent", r.Header.Get("traceparent"))
		_, _ = fmt.Fprintln(w, "order taken")
	}))
	t.Cleanup(d.upstream.Close)
	return d
}

// report logs, for a failed test, what the gateways complain of, and what they count about moving rights.
func (d *deployment) report(t *testing.T) {
	if !t.Failed() {
		return
	}
	for _, g := range d.gateways() {
		for _, line := range g.Lines() {
			if bytes.Contains(line, []byte(`"level":"WARN"`)) || bytes.Contains(line, []byte(`"level":"ERROR"`)) || bytes.Contains(line, []byte("rights")) {
				t.Logf("%s: %s", g.instance, line)
			}
		}
		resp, err := http.Get(g.admin + "/metrics")
		if err != nil {
			t.Logf("%s: %v", g.instance, err)
			continue
		}
		for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
			if line := lines.Text(); strings.HasPrefix(line, "partidor_transfer") || strings.HasPrefix(line, "partidor_rights") {
				t.Logf("%s: %s", g.instance, line)
			}
		}
		resp.Body.Close()
	}
}

func (d *deployment) gateways() (all []*gateway) {
	for _, name := range slices.Sorted(maps.Keys(d.regions)) {
		all = append(all, d.regions[name].gateways...)
	}
	return all
}

func (d *deployment) startNATS(t *testing.T) {
	t.Helper()
	if d.control.nats == "" {
		d.control.nats = fmt.Sprintf("nats://127.0.0.1:%d", testenv.FreePort(t))
	}
	port := d.control.nats[strings.LastIndexByte(d.control.nats, ':')+1:]
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

// seed fills the ledger as people do, by SQL.
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
	d.tenants(t, "shop-a", "curl", "flood", "swing", "edit", "outage", "norule")
}

// tenants makes tenants, each with an API key that is its name with "key-" before it.
func (d *deployment) tenants(t *testing.T, names ...string) {
	t.Helper()
	for _, tenant := range names {
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
access: {anonymous: operator}
parameters: {cycle: %s, mean_half_life: 3s, peak_half_life: 10s}
`, d.control.postgres, d.control.nats, cycle))
	d.rebalancer = testenv.StartProgram(t, []string{program("rebalancer"), "-config", path}, d.tracing("always_on")...)
	d.rebalancers = append(d.rebalancers, d.rebalancer)
	d.rebalancer.AwaitLine(patient, says("leading", nil))
}

// startGateway starts one gateway on ports of its choice. Its decisions may take longer than the usual 5 ms, since
// everything shares this machine's processors.
func (d *deployment) startGateway(t *testing.T, r *region, instance string) *gateway {
	t.Helper()
	decisions := filepath.Join(d.dir, fmt.Sprintf("%s.%d.decisions", instance, len(d.decisions)))
	d.decisions = append(d.decisions, decisions)
	redis := ""
	if r.cluster != nil {
		redis = fmt.Sprintf(`{addresses: ["%s"], cluster: true}`, strings.Join(r.cluster.Addrs(), `", "`))
	} else {
		redis = fmt.Sprintf("{addresses: [%q]}", r.redis.Addr)
	}
	path := d.write(t, instance+".yaml", fmt.Sprintf(`
listen: 127.0.0.1:0
admin: {listen: "127.0.0.1:0"}
region: %s
instance: %s
upstreams:
  orders: {targets: [{url: %q}]}
routes:
  - {id: create-order, methods: [POST], path: /orders, upstream: orders}
  - {id: bulk-order, methods: [POST], path: /bulk, upstream: orders, cost: 2}
redis: %s
nats: {urls: [%q]}
postgres: {url: %q}
snapshot: {file: %q}
decision: {deadline: 500ms, log: {file: %q}}
usage: {interval: 1s}
`, r.name, instance, d.upstream.URL, redis, r.nats, r.postgres, filepath.Join(d.dir, instance+".snapshot"), decisions))
	g := &gateway{instance: instance, Program: testenv.StartProgram(t, []string{program("gateway"), "-config", path}, d.tracing("parentbased_traceidratio")...)}
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
