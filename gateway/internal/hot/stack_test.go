package hot_test

import (
	"context"
	"crypto/sha256"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"partidor.dev/partidor/gateway/internal/config"
	"partidor.dev/partidor/gateway/internal/hot"
	"partidor.dev/partidor/gateway/internal/hot/admit"
	"partidor.dev/partidor/gateway/internal/hot/identify"
	"partidor.dev/partidor/gateway/internal/snapshot"
	"partidor.dev/partidor/lua"
	"partidor.dev/partidor/shared/bucket"
	"partidor.dev/partidor/shared/bucket/redisconn"
	"partidor.dev/partidor/shared/limit"
	"partidor.dev/partidor/shared/testenv"
)

// settableClock makes the shipped script run on a clock that the test sets, and sets no expiry, which would follow the
// server's own clock.
const settableClock = `
local server = redis
local redis = {
  pcall = server.pcall,
  call = function(name, ...)
    if name == 'PEXPIRE' or name == 'PERSIST' then return 0 end
    return server.call(name, ...)
  end,
}
local function now_us() return tonumber(redis.call('GET', 'test:now')) end
`

// stack is the request path over a real Redis: gateways A and B, one region that holds the whole limit, one upstream.
type stack struct {
	testing.TB
	server *testenv.Redis
	client redis.UniversalClient
	holder *snapshot.Holder
	urls   [2]string
	hits   atomic.Int64
	now    time.Time
}

func newStack(t *testing.T, costs map[string]int64) *stack {
	t.Helper()
	s := &stack{TB: t, server: testenv.StartRedis(t), holder: snapshot.NewHolder("eu"), now: time.UnixMicro(1_760_256_000_123_456)}
	client, err := redisconn.New(redisconn.Options{Addrs: []string{s.server.Addr}, DialTimeout: time.Minute, OpTimeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	s.client = client
	s.advance(0)
	s.update(func(b *snapshot.Builder) error {
		b.SetKey(sha256.Sum256([]byte("k-t1")), snapshot.APIKey{Tenant: "t1", Enabled: true})
		return b.SetRegions([]snapshot.Region{{Name: "eu", Base: limit.Whole}}, limit.Revision{Number: 1})
	})
	upstream := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { s.hits.Add(1) }))
	t.Cleanup(upstream.Close)
	c := &config.Config{Region: "eu", Rules: config.Rules{File: "rules.yaml"},
		Upstreams: map[string]config.Upstream{"echo": {Targets: []config.Target{{URL: upstream.URL}}}},
		Routes: []config.Route{
			{ID: "items", Path: "/v1/items", Upstream: "echo"},
			{ID: "item", Path: "/v1/items/{id}", Upstream: "echo"},
			{ID: "heavy", Path: "/v1/heavy", Upstream: "echo"},
			{ID: "free", Path: "/v1/free", Upstream: "echo"},
		}}
	for i := range c.Routes {
		if cost, ok := costs[c.Routes[i].ID]; ok {
			c.Routes[i].Cost = &cost
		}
	}
	c.SetDefaults()
	for i := range s.urls {
		store := bucket.NewRedis(bucket.Options{Client: client, CallTimeout: time.Minute, Script: lua.OnClock(settableClock, lua.Take)})
		t.Cleanup(store.Close)
		admitter, err := admit.New(time.Now(), admit.Options{
			Rules: s.holder, Store: store, Instances: func() int { return 2 },
			Deadline:    time.Minute, // The machine that tests may be slow; what is late is another test's business.
			DeniedCache: -1,          // Its 100 ms are real time, the buckets' time is not.
		})
		if err != nil {
			t.Fatal(err)
		}
		h, err := hot.New(hot.Options{Config: c, Admitter: admitter, Tenants: func() identify.Tenants { return s.holder.Load() }})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(h.Close)
		front := httptest.NewServer(h)
		t.Cleanup(front.Close)
		s.urls[i] = front.URL
	}
	return s
}

func (s *stack) update(edit func(*snapshot.Builder) error) {
	s.Helper()
	if err := s.holder.Update(edit); err != nil {
		s.Fatal(err)
	}
}

// rule sets the rule of t1's route. Revisions rise by themselves.
func (s *stack) rule(route string, capacity, refill, period int64) {
	s.Helper()
	next := s.holder.Load().Revision().Number + 1
	r := &limit.Rule{Capacity: capacity, Refill: refill, PeriodSeconds: period, Revision: limit.Revision{Number: next}}
	if err := r.Validate(); err != nil {
		s.Fatal(err)
	}
	s.update(func(b *snapshot.Builder) error {
		b.SetRule("t1", route, r)
		b.Reach(r.Revision)
		return nil
	})
}

// advance moves the buckets' clock.
func (s *stack) advance(d time.Duration) {
	s.Helper()
	s.now = s.now.Add(d)
	if err := s.client.Set(context.Background(), "test:now", s.now.UnixMicro(), 0).Err(); err != nil {
		s.Fatal(err)
	}
}

type answered struct {
	status     int
	retryAfter time.Duration
	remaining  int
	header     http.Header
}

// get asks gateway number i.
func (s *stack) get(i int, path string) answered {
	s.Helper()
	req, err := http.NewRequest("GET", s.urls[i]+path, nil)
	if err != nil {
		s.Fatal(err)
	}
	req.Header.Set("X-Api-Key", "k-t1")
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		s.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, resp.Body)
	resp.Body.Close()
	a := answered{status: resp.StatusCode, remaining: -1, header: resp.Header}
	if v, err := strconv.Atoi(resp.Header.Get("X-RateLimit-Remaining")); err == nil {
		a.remaining = v
	}
	if v, err := strconv.Atoi(resp.Header.Get("Retry-After")); err == nil {
		a.retryAfter = time.Duration(v) * time.Second
	}
	return a
}

// drain asks until the first refusal, by both gateways in turn, and returns it with the number that passed.
func (s *stack) drain(path string) (passed int, last answered) {
	s.Helper()
	for {
		last = s.get(passed%2, path)
		if last.status != http.StatusOK {
			return passed, last
		}
		passed++
	}
}

// request-path 20: two rules with the same numbers are two buckets, with Redis and without.
func TestSameNumbersAreTwoBuckets(t *testing.T) {
	s := newStack(t, nil)
	s.rule("items", 20, 1, 1)
	s.rule("item", 20, 1, 1)
	if passed, _ := s.drain("/v1/items"); passed != 20 {
		t.Errorf("%d passed, want 20", passed)
	}
	if a := s.get(0, "/v1/items/7"); a.status != 200 || a.remaining != 19 {
		t.Errorf("the other rule: %d, %d left", a.status, a.remaining)
	}
	s.server.Kill()
	if a := s.get(0, "/v1/items"); a.status == 200 {
		t.Errorf("the drained bucket is full in the fallback: %d", a.status)
	}
	if a := s.get(0, "/v1/items/7"); a.status != 200 {
		t.Errorf("the other rule in the fallback: %d", a.status)
	}
}

// request-path 25, limits 43: with a limit over all of a tenant's routes exhausted, the route's own is not charged.
func TestOneOfSeveralLimitsDenies(t *testing.T) {
	s := newStack(t, nil)
	s.rule("items", 50, 1, 3600)
	s.rule("item", 100, 1, 3600)
	s.rule(limit.TenantRoute, 30, 1, 3600)
	for range 30 {
		s.get(0, "/v1/items/7")
	}
	for range 20 {
		if a := s.get(1, "/v1/items"); a.status != 429 || a.header.Get("RateLimit") != `"@tenant";r=0;t=3600` {
			t.Fatalf("%d %v", a.status, a.header)
		}
	}
	tokens, err := s.client.HGet(t.Context(), limit.Key{Tenant: "t1", Route: "items"}.Redis(), "tokens").Float64()
	if err != nil && err != redis.Nil || err == nil && tokens < 50 {
		t.Errorf("the route's bucket holds %v, %v", tokens, err)
	}
}

// request-path 32: a burst of 500 by two gateways admits exactly what the bucket holds.
func TestParallelBurstIsExact(t *testing.T) {
	s := newStack(t, nil)
	s.rule("items", 10, 1, limit.MaxPeriodSeconds)
	var passed, refused atomic.Int64
	var wg sync.WaitGroup
	for i := range 50 {
		wg.Go(func() {
			for range 10 {
				switch s.get(i%2, "/v1/items").status {
				case 200:
					passed.Add(1)
				case 429:
					refused.Add(1)
				}
			}
		})
	}
	wg.Wait()
	if passed.Load() != 10 || refused.Load() != 490 || s.hits.Load() != 10 {
		t.Errorf("%d passed, %d refused, %d hits", passed.Load(), refused.Load(), s.hits.Load())
	}
}

// limits 35, 38, request-path 34, 37, 47: whoever obeys Retry-After, alone, is admitted.
func TestObeyingRetryAfterIsAdmitted(t *testing.T) {
	for _, tt := range []struct {
		name                     string
		capacity, refill, period int64
		retryAfter               time.Duration
		reset                    string
	}{
		{"3 per second", 3, 3, 1, time.Second, "1"},
		{"100 per second", 200, 100, 1, time.Second, "2"},
		{"burst below rate", 1, 100, 1, time.Second, "1"},
		{"3600 per hour, burst 6", 6, 3600, 3600, time.Second, "6"},
		{"1 per 10 minutes", 1, 1, 600, 600 * time.Second, "600"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newStack(t, nil)
			s.rule("items", tt.capacity, tt.refill, tt.period)
			passed, refusal := s.drain("/v1/items")
			if passed != int(tt.capacity) || refusal.status != 429 {
				t.Errorf("%d passed, then %d", passed, refusal.status)
			}
			if most := tt.retryAfter + tt.retryAfter*3/100; refusal.retryAfter < tt.retryAfter || refusal.retryAfter > most {
				t.Errorf("Retry-After %s, want %s", refusal.retryAfter, tt.retryAfter)
			}
			if got := refusal.header.Get("X-RateLimit-Reset"); got != tt.reset {
				t.Errorf("reset %s, want %s", got, tt.reset)
			}
			if tt.retryAfter > 30*time.Second {
				s.advance(tt.retryAfter - time.Second)
				if a := s.get(1, "/v1/items"); a.status != 429 {
					t.Errorf("a second early: %d", a.status)
				}
				s.advance(time.Second)
			} else {
				s.advance(refusal.retryAfter)
			}
			if a := s.get(0, "/v1/items"); a.status != 200 {
				t.Errorf("after waiting: %d", a.status)
			}
		})
	}
}

// limits 40: a cost above the capacity changes nothing; request-path 31: a cost of 0 asks no Redis.
func TestCosts(t *testing.T) {
	s := newStack(t, map[string]int64{"heavy": 11, "free": 0})
	s.rule("heavy", 10, 1, 1)
	if a := s.get(0, "/v1/heavy"); a.status != 413 || a.retryAfter != 0 || a.remaining != 10 {
		t.Errorf("too large: %d, Retry-After %s, %d left", a.status, a.retryAfter, a.remaining)
	}
	if n, err := s.client.Exists(t.Context(), limit.Key{Tenant: "t1", Route: "heavy"}.Redis()).Result(); err != nil || n != 0 {
		t.Errorf("it left a bucket: %d, %v", n, err)
	}
	s.server.Kill()
	if a := s.get(0, "/v1/free"); a.status != 200 {
		t.Errorf("a free request without Redis: %d", a.status)
	}
}

// limits 80: a lower rule clamps what is stored, and the headers follow at once; request-path 79: a higher one fills at its
// own rate, not at once.
func TestRuleChangeShowsInHeaders(t *testing.T) {
	s := newStack(t, nil)
	s.rule("items", 5_000_000, 1, 1)
	if a := s.get(0, "/v1/items"); a.remaining != 4_999_999 {
		t.Errorf("%d left", a.remaining)
	}
	s.rule("items", 10, 1, 1)
	a := s.get(0, "/v1/items")
	if a.remaining > 10 || a.header.Get("X-RateLimit-Limit") != "10" || a.header.Get("RateLimit-Policy") != `"items";q=10;w=10` {
		t.Errorf("%d left, %v", a.remaining, a.header)
	}
	s.drain("/v1/items")
	s.rule("items", 200, 100, 1)
	if a := s.get(1, "/v1/items"); a.status != 429 || a.header.Get("RateLimit-Policy") != `"items";q=200;w=2` {
		t.Errorf("the raise refilled: %d %v", a.status, a.header)
	}
	s.advance(100 * time.Millisecond)
	if a := s.get(1, "/v1/items"); a.status != 200 || a.remaining != 9 {
		t.Errorf("100 ms later: %d, %d left", a.status, a.remaining)
	}
}
