package e2e

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"partidor.dev/partidor/deploy/internal/admission"
	"partidor.dev/partidor/deploy/internal/load"
	"partidor.dev/partidor/shared/testenv"
	"partidor.dev/partidor/shared/testenv/natsenv"
)

// Every gateway of a region is replaced in turn while clients of every kind go on: short requests over HTTP/1.1 and HTTP/2, uploads
// that last, and open sockets. No request fails, and the limit is kept over all of them (request-path 115).
func TestRollingRestart(t *testing.T) {
	r := newRollout(t)
	steady := &stream{r: r, tenant: "steady", rate: 80, statuses: []int{http.StatusOK}}
	flood := &stream{r: r, tenant: "flood", rate: 200, statuses: []int{http.StatusOK, http.StatusTooManyRequests}}
	checker := admission.NewChecker(floodCapacity, floodRate)
	flood.admitted = func(x load.Result) { checker.Admitted(1, x.Sent, x.Received) }
	for _, s := range []*stream{steady, flood} {
		s.run(t)
	}
	uploads := r.upload(t)
	wait(t, 2*time.Second)
	for i := range r.gateways {
		r.replace(t, i)
		wait(t, time.Second)
	}
	r.stop()
	r.clients.Wait()
	if excess := checker.Excess(); excess > 1e-6 {
		t.Errorf("the limit was exceeded by %.3f tokens", excess)
	}
	if steady.served.Load() == 0 || flood.served.Load() < int64(floodCapacity) || uploads.Load() < 4 {
		t.Errorf("%d and %d requests and %d uploads served: too few to show anything", steady.served.Load(), flood.served.Load(), uploads.Load())
	}
	t.Logf("%d steady, %d flooding requests and %d uploads served, deepest draw %.1f of %v",
		steady.served.Load(), flood.served.Load(), uploads.Load(), checker.Deepest(), floodCapacity)
}

const (
	floodCapacity, floodRate = 100.0, 50.0
	replicas                 = 2
)

// rollout is a region of gateways behind a balancer that follows their readiness.
type rollout struct {
	config   string
	gateways []*gateway
	begin    time.Time
	clients  sync.WaitGroup
	ctx      context.Context
	stop     context.CancelFunc

	mu    sync.Mutex
	known []*gateway // to the balancer
	ready []*gateway
	next  int
}

func newRollout(t *testing.T) *rollout {
	t.Helper()
	upstream := httptest.NewServer(http.HandlerFunc(serveRollout))
	t.Cleanup(upstream.Close)
	dir := &deployment{dir: t.TempDir()}
	rules := dir.write(t, "rules.yaml", fmt.Sprintf(`
revision: 1
regions: {eu: 100%%}
rules:
  - {tenant: steady, route: "*", capacity: 1000000, refill_per_second: 1000000}
  - {tenant: flood, route: create-order, capacity: %v, refill_per_second: %v}
tenants: [{id: steady}, {id: flood}]
api_keys: [{tenant: steady, key: key-steady}, {tenant: flood, key: key-flood}]
`, floodCapacity, floodRate))
	r := &rollout{begin: time.Now(), config: dir.write(t, "gateway.yaml", fmt.Sprintf(`
listen: 127.0.0.1:0
admin: {listen: "127.0.0.1:0"}
region: eu
server: {h2c: true, drain_delay: 2s, drain_timeout: 8s}
upstreams: {orders: {targets: [{url: %q}]}}
routes:
  - {id: create-order, methods: [POST], path: /orders, upstream: orders}
  - {id: upload, methods: [PUT], path: /upload, upstream: orders}
  - {id: socket, path: /socket, upstream: orders}
redis: {addresses: [%q]}
nats: {urls: [%q]}
rules: {file: %q}
decision: {deadline: 500ms}
`, upstream.URL, testenv.StartRedis(t).Addr, natsenv.Start(t).URL, rules))}
	r.ctx, r.stop = context.WithCancel(context.Background())
	t.Cleanup(func() { r.stop(); r.clients.Wait() })
	for range replicas {
		r.gateways = append(r.gateways, r.start(t))
	}
	r.clients.Go(r.follow)
	testenv.Eventually(t, patient, func() error {
		if n := r.readyOnes(); n != replicas {
			return fmt.Errorf("%d gateways are ready", n)
		}
		return nil
	})
	return r
}

// serveRollout answers orders at once and uploads at their end, and sends back what comes through a socket.
func serveRollout(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Upgrade") == "" {
		n, err := io.Copy(io.Discard, r.Body)
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		_, _ = fmt.Fprint(w, n)
		return
	}
	conn, rw, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(err)
	}
	defer conn.Close()
	_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
	_, _ = io.Copy(conn, rw)
}

func (r *rollout) start(t *testing.T) *gateway {
	t.Helper()
	g := &gateway{Program: testenv.StartProgram(t, []string{program("gateway"), "-config", r.config})}
	var at struct{ Listen, Admin string }
	g.AwaitLine(patient, says("serving", &at))
	g.url, g.admin = "http://"+at.Listen, "http://"+at.Admin
	r.mu.Lock()
	defer r.mu.Unlock()
	r.known = append(r.known, g)
	return g
}

// replace sends SIGTERM to one gateway while a socket through it is open, and puts a new one in its place once it is gone.
func (r *rollout) replace(t *testing.T, i int) {
	t.Helper()
	g := r.gateways[i]
	socket := openSocket(t, g)
	socket.says(t, "before\n")
	ended := make(chan struct{})
	go func() { g.Stop(); close(ended) }()
	g.AwaitLine(patient, says("draining", nil))
	// The port is closed when the delay is over; the socket lives on.
	testenv.Eventually(t, patient, func() error {
		conn, err := net.Dial("tcp", strings.TrimPrefix(g.url, "http://"))
		if err != nil {
			return nil
		}
		conn.Close()
		return errors.New("still accepts connections")
	})
	socket.says(t, "amid\n")
	socket.conn.Close()
	<-ended
	if status := g.Wait(patient); status != 0 {
		t.Errorf("gateway %d ended with status %d\n%s", i, status, g.Output())
	}
	r.mu.Lock()
	for j, k := range r.known {
		if k == g {
			r.known = append(r.known[:j:j], r.known[j+1:]...)
			break
		}
	}
	r.mu.Unlock()
	r.gateways[i] = r.start(t)
	testenv.Eventually(t, patient, func() error {
		if n := r.readyOnes(); n != replicas {
			return fmt.Errorf("%d gateways are ready", n)
		}
		return nil
	})
}

func (r *rollout) readyOnes() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.ready)
}

// follow asks every gateway for its readiness, ten times a second, as a balancer does.
func (r *rollout) follow() {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	client := &http.Client{Timeout: time.Second}
	for {
		r.mu.Lock()
		known := append([]*gateway(nil), r.known...)
		r.mu.Unlock()
		var ready []*gateway
		for _, g := range known {
			if resp, err := client.Get(g.admin + "/readyz"); err == nil {
				resp.Body.Close()
				if resp.StatusCode == http.StatusOK {
					ready = append(ready, g)
				}
			}
		}
		r.mu.Lock()
		r.ready = ready
		r.mu.Unlock()
		select {
		case <-r.ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// pick is the ready gateway whose turn it is.
func (r *rollout) pick() *gateway {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.ready) == 0 {
		return nil
	}
	r.next++
	return r.ready[r.next%len(r.ready)]
}

// stream is one tenant's short requests.
type stream struct {
	r        *rollout
	tenant   string
	rate     float64
	statuses []int
	served   atomic.Int64
	admitted func(load.Result) // nil for nothing to do
}

// run sends half of the requests over HTTP/1.1, half over HTTP/2, and fails the test for any that is not served.
func (s *stream) run(t *testing.T) {
	over2 := &http.Transport{Protocols: new(http.Protocols)}
	over2.Protocols.SetUnencryptedHTTP2(true)
	for i, client := range []*http.Client{load.Client(patient), {Transport: over2, Timeout: patient}} {
		s.r.clients.Go(func() {
			defer client.CloseIdleConnections()
			load.Run(s.r.ctx, client, s.r.begin, load.Source{
				Request: func(ctx context.Context) (*http.Request, error) {
					g := s.r.pick()
					if g == nil {
						return nil, errors.New("no gateway is ready")
					}
					return request(ctx, g.url, s.tenant)
				},
				Rate: func(time.Duration) float64 { return s.rate / 2 },
				Seed: uint64(i),
			}, func(x load.Result) { s.note(t, i+1, x) })
		})
	}
}

func (s *stream) note(t *testing.T, version int, x load.Result) {
	s.served.Add(1)
	if x.Status == http.StatusOK && s.admitted != nil {
		s.admitted(x)
	}
	for _, status := range s.statuses {
		if x.Err == nil && x.Status == status {
			return
		}
	}
	t.Errorf("%s over HTTP/%d at %s: status %d, shed %t, %v", s.tenant, version, x.Sent, x.Status, x.Shed, x.Err)
}
