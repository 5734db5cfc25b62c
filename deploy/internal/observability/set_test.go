package observability

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	gateway "partidor.dev/partidor/gateway/app"
	rebalancer "partidor.dev/partidor/rebalancer/app"
	"partidor.dev/partidor/shared/testenv"
	"partidor.dev/partidor/shared/testenv/natsenv"
	"partidor.dev/partidor/shared/testenv/otlpenv"
)

// patient bounds what a test waits for on a busy machine.
const patient = time.Minute

// set is a deployment as small as can be: two regions with one gateway and one Redis each, a rebalancer, PostgreSQL, NATS, a
// collector of traces, all in this process or beside it.
type set struct {
	otlp       *otlpenv.Collector
	db         *pgx.Conn
	redis      map[string]*testenv.Redis
	gateways   map[string]*process
	rebalancer *process
}

// process is a service that runs in this process.
type process struct {
	url, admin string
	region     string
}

const (
	cycle = 2 * time.Second
	named = "shop-a" // the tenant that has series of its own
)

func newSet(t *testing.T) *set {
	t.Helper()
	s := &set{otlp: otlpenv.Start(t), redis: map[string]*testenv.Redis{}, gateways: map[string]*process{}}
	t.Setenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", s.otlp.Endpoint)
	t.Setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")
	t.Setenv("OTEL_BSP_SCHEDULE_DELAY", "200")
	bus, postgres := natsenv.Start(t), testenv.StartPostgres(t)
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Fail") != "" {
			w.WriteHeader(http.StatusBadGateway)
		}
	}))
	t.Cleanup(upstream.Close)
	s.startRebalancer(t, postgres.URL, bus.URL)
	s.db = postgres.Conn(t)
	s.seed(t)
	for _, region := range []string{"eu", "us"} {
		s.redis[region] = testenv.StartRedis(t, testenv.RedisConfig("maxmemory", "64mb"), testenv.RedisConfig("maxmemory-policy", "noeviction"))
		s.startGateway(t, region, upstream.URL, postgres.URL, bus.URL)
	}
	return s
}

func (s *set) startRebalancer(t *testing.T, postgres, bus string) {
	t.Helper()
	l := listen(t)
	s.rebalancer = &process{url: "http://" + l.Addr().String(), admin: "http://" + l.Addr().String()}
	config := fmt.Sprintf(`
instance: rebalancer-1
postgres: {url: %q, migrate: true}
nats: {urls: [%q]}
access: {anonymous: operator}
parameters: {mean_half_life: 2s, peak_half_life: 4s}
`, postgres, bus)
	run(t, "rebalancer", func(ctx context.Context) error {
		return rebalancer.Run(ctx, rebalancer.Options{Config: []byte(config), LogOutput: io.Discard, Listener: l, Cycle: cycle})
	})
	s.rebalancer.awaitReady(t)
}

func (s *set) startGateway(t *testing.T, region, upstream, postgres, bus string) {
	t.Helper()
	config := fmt.Sprintf(`
region: %s
instance: %s-1
upstreams:
  orders: {targets: [{url: %q}]}
routes:
  - {id: create-order, methods: [POST], path: /orders, upstream: orders}
  - {id: read-order, methods: [GET], path: "/orders/{id}", upstream: orders}
redis: {addresses: [%q]}
nats: {urls: [%q]}
postgres: {url: %q}
snapshot: {file: %q}
decision: {deadline: 500ms}
usage: {interval: 500ms, heartbeat: 500ms}
fallback: {breaker: {slow: 500ms}}
telemetry: {log_level: error, tenants: [%s]}
`, region, region, upstream, s.redis[region].Addr, bus, postgres, filepath.Join(t.TempDir(), region), named)
	data, admin := listen(t), listen(t)
	p := &process{url: "http://" + data.Addr().String(), admin: "http://" + admin.Addr().String(), region: region}
	s.gateways[region] = p
	run(t, region, func(ctx context.Context) error {
		return gateway.Run(ctx, gateway.Options{Config: []byte(config), Listener: data, AdminListener: admin})
	})
	p.awaitReady(t)
}

// seed gives the tenants rules of every kind; their API keys are their names with "key-" before them.
func (s *set) seed(t *testing.T) {
	t.Helper()
	for _, statement := range []string{
		`INSERT INTO region (name, base_share, published_share) VALUES ('eu', 700000, 700000), ('us', 300000, 300000)`,
		`INSERT INTO rate_limit_rule (tenant_id, route_id, capacity, refill_per_second) VALUES
			('shop-a', 'create-order', 40, 20), ('hot', 'create-order', 100000, 50000), ('swing', 'create-order', 40, 20)`,
		`INSERT INTO rate_limit_rule (tenant_id, route_id, capacity, refill_per_second, refill_period_seconds) VALUES ('tiny', 'create-order', 2, 1, 5)`,
		`INSERT INTO rate_limit_rule (tenant_id, route_id, capacity, refill_per_second, mode) VALUES ('shadow', 'create-order', 1, 1, 'shadow')`,
		`UPDATE rate_limit_rule SET prefetch = true WHERE tenant_id = 'hot'`,
	} {
		s.exec(t, statement)
	}
	for _, tenant := range []string{"shop-a", "hot", "swing", "tiny", "shadow"} {
		s.exec(t, `INSERT INTO tenant (id) VALUES ($1)`, tenant)
		s.exec(t, `INSERT INTO api_key (hash, tenant_id) VALUES (sha256(convert_to($1, 'UTF8')), $2)`, "key-"+tenant, tenant)
	}
}

func (s *set) exec(t *testing.T, sql string, args ...any) {
	t.Helper()
	if _, err := s.db.Exec(t.Context(), sql, args...); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

// run keeps a service running until the test ends.
func run(t *testing.T, name string, service func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- service(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("%s: %v", name, err)
		}
	})
}

func listen(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func (p *process) awaitReady(t *testing.T) {
	t.Helper()
	testenv.Eventually(t, patient, func() error {
		resp, err := http.Get(p.admin + "/readyz")
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			body, _ := io.ReadAll(resp.Body)
			return fmt.Errorf("%s/readyz answers %s: %s", p.admin, resp.Status, body)
		}
		return nil
	})
}

// scrape is the text of /metrics.
func (p *process) scrape(t *testing.T) string {
	t.Helper()
	resp, err := http.Get(p.admin + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

// order sends one order of a tenant; header is names and values in turn.
func (p *process) order(ctx context.Context, tenant string, header ...string) (status int, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, p.url+"/orders", strings.NewReader("{}"))
	if err != nil {
		return 0, err
	}
	req.Header.Set("X-Api-Key", "key-"+tenant)
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err
	}
	_, _ = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode, resp.Body.Close()
}

// traffic keeps every kind of request coming until the test ends: more from us than its share of the limits allows. Every kind
// comes from a client of its own, so that a slow answer to one thins out no other.
func (s *set) traffic(t *testing.T) {
	t.Helper()
	kinds := []struct {
		tenant string
		every  map[string]time.Duration // by region
		burst  int                      // requests at once: more than a small limit holds is refused however slow the machine is
		header []string
	}{
		{"swing", map[string]time.Duration{"eu": 200 * time.Millisecond, "us": 40 * time.Millisecond}, 1, nil},
		{named, map[string]time.Duration{"eu": 200 * time.Millisecond, "us": 40 * time.Millisecond}, 1, nil},
		{"hot", map[string]time.Duration{"eu": 10 * time.Millisecond, "us": 10 * time.Millisecond}, 5, nil},
		{"tiny", map[string]time.Duration{"eu": 500 * time.Millisecond, "us": 500 * time.Millisecond}, 5, nil},
		{"shadow", map[string]time.Duration{"eu": 500 * time.Millisecond, "us": 500 * time.Millisecond}, 5, nil},
		{"nobody", map[string]time.Duration{"eu": 500 * time.Millisecond, "us": 500 * time.Millisecond}, 1, nil},
		{named, map[string]time.Duration{"eu": 500 * time.Millisecond, "us": 500 * time.Millisecond}, 1, []string{"Fail", "yes"}},
	}
	ctx, cancel := context.WithCancel(context.Background())
	var clients sync.WaitGroup
	t.Cleanup(func() { cancel(); clients.Wait() })
	for region, p := range s.gateways {
		for _, kind := range kinds {
			clients.Go(func() {
				tick := time.NewTicker(kind.every[region])
				defer tick.Stop()
				for {
					select {
					case <-ctx.Done():
						return
					case <-tick.C:
					}
					for range kind.burst {
						_, _ = p.order(ctx, kind.tenant, kind.header...)
					}
				}
			})
		}
	}
}

// repository is the root of the work tree.
func repository(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "go.work")); err != nil {
		t.Fatal(err)
	}
	return dir
}
