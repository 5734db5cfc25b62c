package e2e

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"partidor.dev/partidor/deploy/internal/admission"
	"partidor.dev/partidor/deploy/internal/load"
	"partidor.dev/partidor/shared/limit"
	"partidor.dev/partidor/shared/testenv"
	"partidor.dev/partidor/shared/testenv/natsenv"
)

const (
	wholeCapacity, wholeRate = 200.0, 100.0
	asked                    = 130.0 // requests per second where most of the traffic is
	elsewhere                = 15.0  // and in the other region
)

// upgrade is two regions, a control plane, and clients that never pause.
type upgrade struct {
	dir, upstream string
	postgres      *testenv.Postgres
	nats          string
	rebalancer    *testenv.Program
	admin         string // address of its admin port
	halves        []*half
	last, next    release
	started       int // gateways so far

	busy    atomic.Pointer[half] // where most of the traffic is; nil for nowhere
	stop    context.CancelFunc
	clients sync.WaitGroup

	mu       sync.Mutex
	checker  *admission.Checker
	statuses map[int]int
}

// half is a region: its Redis, and the one gateway that stands there now.
type half struct {
	name    string
	redis   *testenv.Redis
	client  *redis.Client
	gateway atomic.Pointer[gateway]
}

// The release before and this one work side by side, in any order, forwards and back, under traffic that moves between the
// regions at every step: no limit is exceeded, and the shares of both regions are the whole again whenever they come to rest.
// The ledger is migrated under the old programs, restored from a copy of the release before, and taken back to its schema.
func TestUpgradeInAnyOrder(t *testing.T) {
	u := startUpgrade(t)
	copied := filepath.Join(t.TempDir(), "ledger.dump")
	u.script(t, "../postgres/backup", u.postgres.URL, copied)
	eu, us := u.halves[0], u.halves[1]
	u.settles(t, "the last release alone", eu)
	u.migrateBy(t, u.next, "up")
	u.rebalance(t, u.next)
	u.settles(t, "the next schema and rebalancer, the last gateways", us)
	u.upgradeGateway(t, us, u.next)
	u.rebalance(t, u.last)
	u.settles(t, "the last rebalancer on the next schema, gateways of both", eu)
	u.upgradeGateway(t, eu, u.next)

	// The ledger of the release before, from before any share moved, comes back under the next release.
	u.rebalancer.Stop()
	u.script(t, "../postgres/restore", u.postgres.URL, copied)
	u.migrateBy(t, u.next, "up")
	u.rebalance(t, u.next)
	u.hears(t, 61)
	u.settles(t, "the next release, after a restore of the ledger", us)

	// And back, the schema last.
	u.upgradeGateway(t, eu, u.last)
	u.rebalance(t, u.last)
	u.upgradeGateway(t, us, u.last)
	u.takeBack(t)
	u.hears(t, 62)
	u.settles(t, "the last release again", eu)

	u.end()
	if excess := u.checker.Excess(); excess > 1e-6 {
		t.Errorf("the limit was exceeded by %.3f tokens", excess)
	}
	t.Logf("clients saw %v, deepest draw %.1f of %v", u.seen(), u.checker.Deepest(), wholeCapacity)
}

func startUpgrade(t *testing.T) *upgrade {
	t.Helper()
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "order taken") }))
	t.Cleanup(upstream.Close)
	u := &upgrade{
		dir: t.TempDir(), upstream: upstream.URL, postgres: testenv.StartPostgres(t), nats: natsenv.Start(t).URL,
		last: lastRelease(t), next: release{binaries},
		checker: admission.NewChecker(wholeCapacity, wholeRate), statuses: map[int]int{},
	}
	u.migrateBy(t, u.last, "up")
	u.exec(t, `INSERT INTO region (name, base_share) VALUES ('eu', 700000), ('us', 300000)`)
	u.exec(t, fmt.Sprintf(`INSERT INTO rate_limit_rule (tenant_id, route_id, capacity, refill_per_second) VALUES
		('flood', 'create-order', %v, %v), ('edit', 'create-order', 60, 5)`, wholeCapacity, wholeRate))
	u.exec(t, `INSERT INTO tenant (id) VALUES ('flood'), ('edit')`)
	u.exec(t, `INSERT INTO api_key (hash, tenant_id) SELECT sha256(convert_to('key-' || id, 'UTF8')), id FROM tenant`)
	u.rebalance(t, u.last)
	for _, name := range []string{"eu", "us"} {
		server := testenv.StartRedis(t, testenv.RedisAppendOnly())
		s := &half{name: name, redis: server, client: server.Client()}
		u.halves = append(u.halves, s)
		s.gateway.Store(u.gateway(t, s, u.last))
	}
	u.send(t)
	return u
}

func (u *upgrade) exec(t *testing.T, sql string, args ...any) {
	t.Helper()
	if _, err := u.postgres.Conn(t).Exec(context.Background(), sql, args...); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

func (u *upgrade) write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(u.dir, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// send lets clients send, in both regions, to whatever gateway stands there.
func (u *upgrade) send(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	u.stop = cancel
	t.Cleanup(u.end)
	client, start := load.Client(patient), time.Now()
	for i, s := range u.halves {
		u.clients.Go(func() {
			load.Run(ctx, client, start, load.Source{
				Request: func(ctx context.Context) (*http.Request, error) { return request(ctx, s.gateway.Load().url, "flood") },
				Rate: func(time.Duration) float64 {
					switch u.busy.Load() {
					case nil:
						return 0
					case s:
						return asked
					}
					return elsewhere
				},
				Seed: uint64(i),
			}, u.note)
		})
	}
}

func (u *upgrade) note(r load.Result) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.statuses[r.Status]++
	if r.Status == http.StatusOK {
		u.checker.Admitted(1, r.Sent, r.Received)
	}
}

// seen is how many answers of each status clients have had.
func (u *upgrade) seen() map[int]int {
	u.mu.Lock()
	defer u.mu.Unlock()
	return maps.Clone(u.statuses)
}

// end stops the clients and waits for their last answers.
func (u *upgrade) end() {
	u.stop()
	u.clients.Wait()
}

// gateway starts one, told nothing that the release before would not understand.
func (u *upgrade) gateway(t *testing.T, s *half, of release) *gateway {
	t.Helper()
	u.started++
	instance := fmt.Sprintf("%s-%d", s.name, u.started)
	path := u.write(t, instance+".yaml", fmt.Sprintf(`
listen: 127.0.0.1:0
admin: {listen: "127.0.0.1:0"}
region: %s
instance: %s
upstreams: {orders: {targets: [{url: %q}]}}
routes: [{id: create-order, methods: [POST], path: /orders, upstream: orders}]
redis: {addresses: [%q]}
nats: {urls: [%q]}
postgres: {url: %q, poll: 1s}
snapshot: {file: %q}
decision: {deadline: 1s}
usage: {interval: 1s}
server: {drain_delay: 0s}
`, s.name, instance, u.upstream, s.redis.Addr, u.nats, u.postgres.URL, filepath.Join(u.dir, s.name+".snapshot")))
	g := &gateway{Program: testenv.StartProgram(t, []string{of.program("gateway"), "-config", path})}
	var at struct{ Listen, Admin string }
	g.AwaitLine(patient, says("serving", &at))
	g.url, g.admin = "http://"+at.Listen, "http://"+at.Admin
	testenv.Eventually(t, patient, func() error {
		resp, err := http.Get(g.admin + "/readyz")
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			return fmt.Errorf("%s: /readyz answers %s", instance, resp.Status)
		}
		return nil
	})
	return g
}

// upgradeGateway puts a gateway of another release in the place of a region's, as a rolling update does: the new one first.
func (u *upgrade) upgradeGateway(t *testing.T, s *half, to release) {
	t.Helper()
	s.gateway.Swap(u.gateway(t, s, to)).Stop()
}

// rebalance puts a rebalancer of another release in the place of the one that runs.
func (u *upgrade) rebalance(t *testing.T, of release) {
	t.Helper()
	if u.rebalancer != nil {
		u.rebalancer.Stop()
	}
	path := u.write(t, "rebalancer.yaml", fmt.Sprintf(`
listen: 127.0.0.1:0
instance: rebalancer-1
postgres: {url: %q}
nats: {urls: [%q]}
access: {anonymous: operator}
parameters: {cycle: %s, mean_half_life: 3s, peak_half_life: 10s}
`, u.postgres.URL, u.nats, cycle))
	u.rebalancer = testenv.StartProgram(t, []string{of.program("rebalancer"), "-config", path})
	var at struct{ Listen string }
	u.rebalancer.AwaitLine(patient, says("rebalancer started", &at))
	u.rebalancer.AwaitLine(patient, says("leading", nil))
	u.admin = "http://" + at.Listen
}

// migrateBy runs one step of `rebalancer migrate` and returns what it said.
func (u *upgrade) migrateBy(t *testing.T, of release, step string) string {
	t.Helper()
	return u.script(t, of.program("rebalancer"), "migrate", step, "--database-url", u.postgres.URL)
}

func (u *upgrade) script(t *testing.T, argv ...string) string {
	t.Helper()
	out, err := exec.Command(argv[0], argv[1:]...).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %v\n%s", argv, err, out)
	}
	return string(out)
}

// takeBack undoes every migration that the last release does not know. It finds the ledger as it left it.
func (u *upgrade) takeBack(t *testing.T) {
	t.Helper()
	applied := func(of release) int {
		return strings.Count(u.migrateBy(t, of, "status"), " applied") - strings.Count(u.migrateBy(t, of, "status"), "not applied")
	}
	for undone := applied(u.next) - applied(u.last); undone > 0; undone-- {
		u.migrateBy(t, u.next, "down")
	}
	if n := applied(u.next); n != applied(u.last) {
		t.Errorf("%d migrations are applied, the last release knows %d", n, applied(u.last))
	}
}

// hears changes a rule by SQL and waits until every gateway has it: revisions go on.
func (u *upgrade) hears(t *testing.T, capacity int) {
	t.Helper()
	u.exec(t, `UPDATE rate_limit_rule SET capacity = $1 WHERE tenant_id = 'edit'`, capacity)
	testenv.Eventually(t, patient, func() error {
		for _, s := range u.halves {
			if got := s.gateway.Load().order(t, "edit").Header.Get("X-RateLimit-Limit"); got != fmt.Sprint(capacity) {
				return fmt.Errorf("%s says limit %s, want %d", s.name, got, capacity)
			}
		}
		return nil
	})
}

// share is what the region's Redis says of flood; −1 while the key has never moved there.
func (s *half) share() limit.Share {
	n, err := s.client.HGet(context.Background(), limit.Key{Tenant: "flood", Route: route}.Redis(), "share").Int64()
	if err != nil {
		return -1
	}
	return limit.Share(n)
}

// settles turns the traffic to one region and waits until the shares have followed it; then lets it rest until nothing is on its
// way, and adds up.
func (u *upgrade) settles(t *testing.T, state string, busy *half) {
	t.Helper()
	u.busy.Store(busy)
	wait(t, 3*time.Second) // until the reports tell of it; then a cycle need not wait for its time
	if resp, err := http.Post(u.admin+"/v1/rebalance/run", "application/json", http.NoBody); err == nil {
		resp.Body.Close()
	}
	testenv.Eventually(t, 4*patient, func() error {
		if share := busy.share(); share < 600_000 {
			return fmt.Errorf("%s: %s has %d ppm; clients saw %v", state, busy.name, share, u.seen())
		}
		return nil
	})
	u.busy.Store(nil)
	testenv.Eventually(t, patient, func() error {
		if sum := u.halves[0].share() + u.halves[1].share(); sum != limit.Whole {
			return fmt.Errorf("%s: the shares add up to %d", state, sum)
		}
		return nil
	})
	u.mu.Lock()
	defer u.mu.Unlock()
	if excess := u.checker.Excess(); excess > 1e-6 {
		t.Fatalf("%s: the limit was exceeded by %.3f tokens", state, excess)
	}
}
