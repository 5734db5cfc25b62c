package e2e

import (
	"context"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"partidor.dev/partidor/deploy/internal/admission"
	"partidor.dev/partidor/deploy/internal/load"
	"partidor.dev/partidor/shared/limit"
)

// order sends POST /orders once.
func (g *gateway) order(t *testing.T, tenant string, header ...string) *http.Response {
	t.Helper()
	req, err := request(context.Background(), g.url, tenant)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	return resp
}

func request(ctx context.Context, url, tenant string) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/orders", http.NoBody)
	if err == nil && tenant != "" {
		req.Header.Set("X-Api-Key", "key-"+tenant)
	}
	return req, err
}

// crowd is one tenant's clients in both regions, and what they saw.
type crowd struct {
	start    time.Time
	tenant   string
	checker  *admission.Checker
	mu       sync.Mutex
	statuses map[int]int
	failure  error
	parts    atomic.Pointer[map[string]float64] // requests per second, by region
	stop     context.CancelFunc
	sent     sync.WaitGroup
}

// send lets a tenant's clients send per second what parts says, by region, until the test ends or stop is called.
func (d *deployment) send(t *testing.T, tenant string, capacity, rate float64, parts map[string]float64) *crowd {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	c := &crowd{start: time.Now(), tenant: tenant, checker: admission.NewChecker(capacity, rate), statuses: map[int]int{}, stop: cancel}
	c.parts.Store(&parts)
	t.Cleanup(c.end)
	client := load.Client(10 * time.Second)
	for _, r := range d.regions {
		for i, g := range r.gateways {
			c.sent.Go(func() {
				load.Run(ctx, client, c.start, load.Source{
					Request: func(ctx context.Context) (*http.Request, error) { return request(ctx, g.url, tenant) },
					Rate:    func(time.Duration) float64 { return (*c.parts.Load())[r.name] / float64(len(r.gateways)) },
					Seed:    uint64(i),
				}, c.note)
			})
		}
	}
	return c
}

// turn changes where the clients send.
func (c *crowd) turn(parts map[string]float64) { c.parts.Store(&parts) }

// end stops the clients and waits for their last answers.
func (c *crowd) end() {
	c.stop()
	c.sent.Wait()
}

func (c *crowd) note(r load.Result) {
	if r.Shed {
		return // never sent: this machine does not keep up
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.statuses[r.Status]++
	if r.Err != nil {
		c.failure = r.Err
	}
	if r.Status == http.StatusOK {
		c.checker.Admitted(1, r.Sent, r.Received)
	}
}

// only fails the test if clients saw anything but the given statuses.
func (c *crowd) only(t *testing.T, statuses ...int) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	others := 0
	for status, n := range c.statuses {
		others += n
		for _, s := range statuses {
			if status == s {
				others -= n
			}
		}
	}
	if others > 0 || c.failure != nil {
		t.Errorf("clients of %s saw %v, want only %v; %v", c.tenant, c.statuses, statuses, c.failure)
	}
}

// kept fails the test if all regions together exceeded the limit.
func (c *crowd) kept(t *testing.T) {
	t.Helper()
	if excess := c.checker.Excess(); excess > 1e-6 {
		t.Errorf("the limit of %s was exceeded by %.3f tokens", c.tenant, excess)
	}
}

// share is what a region's Redis says; false while the key has never moved.
func (r *region) share(t *testing.T, tenant string) (limit.Share, bool) {
	t.Helper()
	text, err := r.store().HGet(context.Background(), limit.Key{Tenant: tenant, Route: route}.Redis(), "share").Result()
	if err != nil {
		return 0, false
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		t.Errorf("share of %s in %s is %q", tenant, r.name, text)
	}
	return limit.Share(n), true
}

// store is a client of the region's Redis, as it stands now.
func (r *region) store() redis.UniversalClient {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.client != nil:
	case r.cluster != nil:
		r.client = redis.NewClusterClient(&redis.ClusterOptions{Addrs: r.cluster.Addrs(), MaxRedirects: 5})
	default:
		r.client = r.redis.Client()
	}
	return r.client
}

// gateway is the region's i-th, as it stands now.
func (r *region) gateway(i int) *gateway {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.gateways[i]
}
