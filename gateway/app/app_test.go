package app_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"partidor.dev/partidor/gateway/app"
	"partidor.dev/partidor/gateway/internal/control/rules/ledgertest"
	"partidor.dev/partidor/shared/testenv"
	"partidor.dev/partidor/shared/testenv/natsenv"
)

// gateway is one that runs in this process.
type gateway struct {
	testing.TB
	URL, Admin string
	cancel     context.CancelFunc
	done       chan error
}

// start runs a gateway with the given lines of configuration below the common ones, and waits until it accepts requests.
func start(tb testing.TB, config string) *gateway {
	tb.Helper()
	g, err := tryStart(tb, config)
	if err != nil {
		tb.Fatalf("start: %v", err)
	}
	return g
}

func tryStart(tb testing.TB, config string) (*gateway, error) {
	tb.Helper()
	if !strings.Contains(config, "\nregion:") {
		config += "\nregion: eu\n"
	}
	return startOptions(tb, app.Options{Config: []byte(config)})
}

func startOptions(tb testing.TB, o app.Options) (*gateway, error) {
	tb.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	g := &gateway{TB: tb, cancel: cancel, done: make(chan error, 1)}
	serving := make(chan struct{})
	o.Listener, o.AdminListener = listen(tb), listen(tb)
	o.Serving = func(data, admin net.Addr) {
		g.URL, g.Admin = "http://"+data.String(), "http://"+admin.String()
		close(serving)
	}
	go func() { g.done <- app.Run(ctx, o) }()
	select {
	case <-serving:
	case err := <-g.done:
		cancel()
		return nil, err
	case <-time.After(30 * time.Second):
		tb.Fatal("the gateway does not serve after 30 s")
	}
	tb.Cleanup(func() { g.stop() })
	return g, nil
}

func listen(tb testing.TB) net.Listener {
	tb.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	return l
}

// stop drains the gateway as SIGTERM does.
func (g *gateway) stop() {
	g.Helper()
	if g.done == nil {
		return
	}
	g.cancel()
	select {
	case err := <-g.done:
		if err != nil {
			g.Errorf("stop: %v", err)
		}
	case <-time.After(30 * time.Second):
		g.Error("the gateway does not stop within 30 s")
	}
	g.done = nil
}

// post sends POST /orders with the key.
func (g *gateway) post(key string) *http.Response {
	g.Helper()
	req, err := http.NewRequestWithContext(context.Background(), http.MethodPost, g.URL+"/orders", http.NoBody)
	if err != nil {
		g.Fatal(err)
	}
	if key != "" {
		req.Header.Set("X-Api-Key", key)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		g.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, resp.Body)
	_ = resp.Body.Close()
	return resp
}

// ready is the body of /readyz and its status.
func (g *gateway) ready() (status int, body struct {
	Status  string
	Reasons []struct{ Reason, Detail string }
}) {
	g.Helper()
	resp, err := http.Get(g.Admin + "/readyz")
	if err != nil {
		g.Fatal(err)
	}
	defer resp.Body.Close()
	if err := json.NewDecoder(resp.Body).Decode(&body); err != nil {
		g.Fatal(err)
	}
	return resp.StatusCode, body
}

// metric is the value of the first series whose line begins with name; −1 if there is none.
func (g *gateway) metric(name string, labels ...string) float64 {
	g.Helper()
	resp, err := http.Get(g.Admin + "/metrics")
	if err != nil {
		g.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		g.Fatal(err)
	}
	if resp.StatusCode != http.StatusOK {
		g.Fatalf("metrics: %s: %s", resp.Status, text)
	}
	for line := range strings.Lines(string(text)) {
		var v float64
		missing := slices.ContainsFunc(labels, func(l string) bool { return !strings.Contains(line, l) })
		if i := strings.LastIndexByte(strings.TrimSpace(line), ' '); strings.HasPrefix(line, name) && !missing && i > 0 {
			if _, err := fmt.Sscan(line[i+1:], &v); err == nil {
				return v
			}
		}
	}
	return -1
}

// eventually waits for a condition by trying it again, as a user would.
func eventually(tb testing.TB, within time.Duration, what string, ok func() bool) {
	tb.Helper()
	deadline := time.After(within)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-deadline:
			tb.Fatalf("not within %s: %s", within, what)
		case <-tick.C:
		}
	}
}

// set is the servers around a gateway.
type set struct {
	redis    *testenv.Redis
	postgres *testenv.Postgres
	nats     *natsenv.Server
	ledger   *pgx.Conn
	upstream *httptest.Server
	status   int // of the upstream
	config   string
}

func newSet(tb testing.TB) *set {
	tb.Helper()
	s := &set{redis: testenv.StartRedis(tb), postgres: testenv.StartPostgres(tb), nats: natsenv.Start(tb), status: http.StatusOK}
	s.ledger = s.postgres.Conn(tb)
	ledgertest.Migrate(tb, s.ledger)
	s.upstream = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if wait := r.Header.Get("X-Wait"); wait != "" {
			d, _ := time.ParseDuration(wait)
			select {
			case <-time.After(d):
			case <-r.Context().Done():
			}
		}
		w.WriteHeader(s.status)
	}))
	tb.Cleanup(s.upstream.Close)
	s.config = fmt.Sprintf(`
upstreams: {orders: {targets: [{url: %q}]}}
routes: [{id: create-order, methods: [POST], path: /orders, upstream: orders}]
redis: {addresses: [%q]}
decision: {deadline: 500ms}
nats: {urls: [%q]}
postgres: {url: %q}
`, s.upstream.URL, s.redis.Addr, s.nats.URL, s.postgres.URL)
	return s
}

func (s *set) exec(tb testing.TB, sql string, args ...any) {
	tb.Helper()
	if _, err := s.ledger.Exec(tb.Context(), sql, args...); err != nil {
		tb.Fatalf("%s: %v", sql, err)
	}
}

// shop makes a tenant whose key is its name.
func (s *set) shop(tb testing.TB, name string) {
	tb.Helper()
	s.exec(tb, `INSERT INTO tenant (id) VALUES ($1)`, name)
	s.exec(tb, `INSERT INTO api_key (hash, tenant_id) VALUES (sha256($1::bytea), $2)`, []byte(name), name)
}

// rule sets capacity tokens, refilled by rate per period seconds.
func (s *set) rule(tb testing.TB, tenant string, capacity, rate, period int) {
	tb.Helper()
	s.exec(tb, `INSERT INTO rate_limit_rule (tenant_id, route_id, capacity, refill_per_second, refill_period_seconds)
	            VALUES ($1, 'create-order', $2, $3, $4)
	            ON CONFLICT (tenant_id, route_id) DO UPDATE SET capacity = $2, refill_per_second = $3, refill_period_seconds = $4`,
		tenant, capacity, rate, period)
}

func migrate(tb testing.TB, s *set) {
	tb.Helper()
	ledgertest.Migrate(tb, s.ledger)
}
