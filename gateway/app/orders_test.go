package app_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"testing"
)

// The quick test of the job: capacity 2, three orders in a row give 200 200 429, with the headers right each time.
func TestThreeOrders(t *testing.T) {
	s := newSet(t)
	s.shop(t, "shop-a")
	s.rule(t, "shop-a", 2, 1, 600)
	g := start(t, s.config)
	for i, want := range []struct {
		status                      int
		remaining, reset, retry, rl string
	}{
		{http.StatusOK, "1", "600", "", `"create-order";r=1;t=600`},
		{http.StatusOK, "0", "1200", "", `"create-order";r=0;t=600`},
		{http.StatusTooManyRequests, "0", "1200", "600", `"create-order";r=0;t=600`},
	} {
		r := g.post("shop-a")
		h := r.Header
		if r.StatusCode != want.status {
			t.Errorf("order %d: status %d, want %d", i+1, r.StatusCode, want.status)
		}
		for name, v := range map[string]string{
			"X-RateLimit-Limit": "2", "X-RateLimit-Remaining": want.remaining, "X-RateLimit-Reset": want.reset,
			"RateLimit-Policy": `"create-order";q=2;w=1200`, "RateLimit": want.rl,
		} {
			if got := h.Get(name); got != v {
				t.Errorf("order %d: %s is %q, want %q", i+1, name, got, v)
			}
		}
		// From 30 s on up to 3 % of jitter is added.
		retry, _ := strconv.Atoi(h.Get("Retry-After"))
		low, _ := strconv.Atoi(want.retry)
		if retry < low || retry > low+low*3/100+1 {
			t.Errorf("order %d: Retry-After %q, want %s to 3 %% more", i+1, h.Get("Retry-After"), want.retry)
		}
	}
	if status, ready := g.ready(); status != http.StatusOK || ready.Status != "ready" {
		t.Errorf("readiness %d %+v", status, ready)
	}
	keys, err := s.redis.Client().Keys(t.Context(), "rl:{*").Result()
	if err != nil || len(keys) != 1 || keys[0] != "rl:{shop-a}:create-order" {
		t.Errorf("keys in redis %q, %v", keys, err)
	}
}

// Unknown keys are 401, cost no bucket, no series, no memory (request-path 13, limits 79).
func TestUnknownKeysCostNothing(t *testing.T) {
	s := newSet(t)
	g := start(t, s.config)
	before := g.metric("partidor_usage_keys")
	for i := range 150 {
		if r := g.post("unknown-" + strconv.Itoa(i)); r.StatusCode != http.StatusUnauthorized {
			t.Fatalf("status %d, want 401", r.StatusCode)
		}
	}
	if n := len(s.redis.Client().Keys(t.Context(), "rl:{*").Val()); n != 0 {
		t.Errorf("%d buckets in redis after unknown callers, want none", n)
	}
	if after := g.metric("partidor_usage_keys"); after != before {
		t.Errorf("%v keys counted, before %v", after, before)
	}
}

// An upstream that fails is no refund: the limit still bounds it (limits 85).
func TestUpstreamErrorsAreCharged(t *testing.T) {
	s := newSet(t)
	s.status = http.StatusInternalServerError
	s.shop(t, "shop-a")
	s.rule(t, "shop-a", 5, 1, 600)
	g := start(t, s.config)
	got := map[int]int{}
	for range 20 {
		got[g.post("shop-a").StatusCode]++
	}
	if got[500] != 5 || got[429] != 15 {
		t.Errorf("statuses %v, want 5 of 500 and 15 of 429", got)
	}
}

// One instance without Redis, PostgreSQL and NATS: store memory and a rules file.
func TestMemoryStore(t *testing.T) {
	upstream := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	t.Cleanup(upstream.Close)
	rules := filepath.Join(t.TempDir(), "rules.yaml")
	if err := os.WriteFile(rules, []byte("revision: 1\ndefault: {capacity: 2, refill_per_second: 1, refill_period_seconds: 600}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	g := start(t, "store: memory\nidentity: {mode: header}\nrules: {file: "+rules+"}\nupstreams: {orders: {targets: [{url: \""+upstream.URL+"\"}]}}\n"+
		"routes: [{id: create-order, methods: [POST], path: /orders, upstream: orders}]\n")
	for i, want := range []int{200, 200, 429} {
		if r := g.post("shop-a"); r.StatusCode != want {
			t.Errorf("order %d: status %d, want %d", i+1, r.StatusCode, want)
		}
	}
	if r := g.post("shop-b"); r.StatusCode != http.StatusOK {
		t.Errorf("another tenant: status %d, want 200", r.StatusCode)
	}
}
