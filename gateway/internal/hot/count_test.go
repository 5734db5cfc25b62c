package hot

import (
	"context"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"partidor.dev/partidor/gateway/internal/config"
	"partidor.dev/partidor/gateway/internal/hot/admit"
	"partidor.dev/partidor/shared/limit"
)

const origin = "https://app.example.com"

func withCORS(c *config.Config) { c.CORS.Origins = []string{origin} }

// request-path 22: a preflight is answered for a drained tenant, without a key, for no token; the guard still counts it. An
// OPTIONS that is no preflight is a request like any other.
func TestPreflightCostsNothing(t *testing.T) {
	f := newFixture(t, nil, func(c *config.Config) {
		withCORS(c)
		c.Addresses.Guard = config.Guard{Requests: 4, Window: time.Hour}
	})
	f.drain(limit.Key{Tenant: "t1", Route: "items"})
	preflight := http.Header{"Origin": {origin}, "Access-Control-Request-Method": {"GET"}, "Access-Control-Request-Headers": {"X-Api-Key"}}
	resp := f.do(t, "OPTIONS", "/v1/items", preflight)
	h := resp.Header
	if resp.StatusCode != 204 || h.Get("Access-Control-Allow-Origin") != origin || h.Get("Access-Control-Allow-Methods") != "GET" ||
		h.Get("Access-Control-Allow-Headers") != "X-Api-Key" || h.Get("Access-Control-Max-Age") != "600" {
		t.Errorf("%d %v", resp.StatusCode, h)
	}
	if resp := f.do(t, "OPTIONS", "/nowhere", preflight); resp.StatusCode != 404 {
		t.Errorf("preflight of no route: %d", resp.StatusCode)
	}
	if resp := f.do(t, "OPTIONS", "/v1/items/7", http.Header{"Origin": {origin}}); resp.StatusCode != 401 {
		t.Errorf("plain OPTIONS: %d", resp.StatusCode)
	}
	f.do(t, "OPTIONS", "/v1/items", preflight)
	if resp := f.do(t, "OPTIONS", "/v1/items", preflight); resp.StatusCode != 429 {
		t.Errorf("the guard let a fifth preflight pass: %d", resp.StatusCode)
	}
	if f.admitter.calls.Load() != 0 || f.echo.hits.Load() != 0 {
		t.Errorf("%d decisions, %d hits", f.admitter.calls.Load(), f.echo.hits.Load())
	}
}

// request-path 23: a browser's script can read a 429.
func TestRefusalIsReadableByBrowsers(t *testing.T) {
	f := newFixture(t, nil, withCORS)
	f.drain(limit.Key{Tenant: "t1", Route: "items"})
	resp := f.do(t, "GET", "/v1/items", http.Header{"X-Api-Key": {"k-t1"}, "Origin": {origin}})
	exposed := resp.Header.Get("Access-Control-Expose-Headers")
	if resp.StatusCode != 429 || resp.Header.Get("Access-Control-Allow-Origin") != origin {
		t.Errorf("%d %v", resp.StatusCode, resp.Header)
	}
	for _, name := range []string{"Retry-After", "RateLimit", "RateLimit-Policy"} {
		if !strings.Contains(exposed, name) {
			t.Errorf("%s is not exposed by %q", name, exposed)
		}
	}
}

// request-path 26: an upstream that fails twice costs one token and is asked three times; a POST is sent once.
func TestRepeatsCostOneToken(t *testing.T) {
	var failing atomic.Int64
	f := newFixture(t, func(w http.ResponseWriter, r *http.Request) {
		if failing.Add(-1) >= 0 {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		_, _ = io.WriteString(w, "at last")
	}, func(c *config.Config) {
		for i := range c.Routes {
			c.Routes[i].Retry = config.Retry{Attempts: 3, Delay: time.Millisecond}
		}
	})
	failing.Store(2)
	resp := f.do(t, "GET", "/v1/items", nil)
	if resp.StatusCode != 200 || bodyOf(t, resp) != "at last" || f.echo.hits.Load() != 3 {
		t.Errorf("%d after %d attempts", resp.StatusCode, f.echo.hits.Load())
	}
	if f.admitter.spentBy("t1", "items") != 1 {
		t.Errorf("%d tokens", f.admitter.spentBy("t1", "items"))
	}
	failing.Store(2)
	if resp := f.do(t, "POST", "/v1/upload", nil); resp.StatusCode != 503 || f.echo.hits.Load() != 4 {
		t.Errorf("POST: %d after %d attempts", resp.StatusCode, f.echo.hits.Load()-3)
	}
	failing.Store(1)
	resp = f.do(t, "POST", "/v1/upload", http.Header{"X-Api-Key": {"k-t1"}, "Idempotency-Key": {"7"}})
	if resp.StatusCode != 200 || f.echo.hits.Load() != 6 {
		t.Errorf("POST with a key: %d after %d attempts", resp.StatusCode, f.echo.hits.Load()-4)
	}
}

// request-path 28: a client that leaves while the decision is slow is logged 499; the upstream is not called.
func TestClientGoneBeforeDecision(t *testing.T) {
	f := newFixture(t, nil, nil)
	deciding, left := make(chan struct{}), make(chan struct{})
	f.admitter.answer = func(r admit.Request) limit.Decision {
		close(deciding)
		<-left
		return limit.Decision{Rule: &f.admitter.rule, Share: limit.Whole, Remaining: 1}
	}
	gone := make(chan struct{})
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		go func() { <-r.Context().Done(); close(left) }()
		defer close(gone)
		f.Handler.ServeHTTP(w, r)
	})
	f.server.Config.Handler = h
	ctx, leave := context.WithCancel(context.Background())
	req, err := http.NewRequestWithContext(ctx, "GET", f.server.URL+"/v1/items", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-Api-Key", "k-t1")
	go func() { <-deciding; leave() }()
	if resp, err := http.DefaultTransport.RoundTrip(req); err == nil {
		t.Fatalf("answered %d", resp.StatusCode)
	}
	<-gone
	if f.echo.hits.Load() != 0 {
		t.Error("the upstream was called")
	}
	if log := f.log.String(); !strings.Contains(log, "status=499") || strings.Contains(log, "status=5") {
		t.Errorf("log: %s", log)
	}
}

// request-path 32, as far as the gateway goes: however many ask at once, each admitted request reaches the upstream once.
func TestParallelBurst(t *testing.T) {
	f := newFixture(t, nil, nil)
	f.admitter.rule.Capacity = 10
	var passed, refused atomic.Int64
	var wg sync.WaitGroup
	for range 100 {
		wg.Go(func() {
			switch f.do(t, "GET", "/v1/items", nil).StatusCode {
			case 200:
				passed.Add(1)
			case 429:
				refused.Add(1)
			}
		})
	}
	wg.Wait()
	if passed.Load() != 10 || refused.Load() != 90 || f.echo.hits.Load() != 10 {
		t.Errorf("%d passed, %d refused, %d hits", passed.Load(), refused.Load(), f.echo.hits.Load())
	}
}

// Requests in flight beyond a route's bound, or one tenant's, are shed with 503 and take no token.
func TestShedding(t *testing.T) {
	entered, proceed := make(chan struct{}, 10), make(chan struct{})
	f := newFixture(t, func(w http.ResponseWriter, r *http.Request) { entered <- struct{}{}; <-proceed }, func(c *config.Config) {
		c.Routes[0].MaxConcurrent, c.Routes[0].MaxConcurrentPerTenant = 3, 2
	})
	var wg sync.WaitGroup
	for _, key := range []string{"k-t1", "k-t1", "k-t2"} {
		wg.Go(func() {
			if s := f.do(t, "GET", "/v1/items", http.Header{"X-Api-Key": {key}}).StatusCode; s != 200 {
				t.Errorf("%s: %d", key, s)
			}
		})
		<-entered
	}
	for _, key := range []string{"k-t1", "k-t2"} {
		resp := f.do(t, "GET", "/v1/items", http.Header{"X-Api-Key": {key}})
		if resp.StatusCode != 503 || resp.Header.Get("Retry-After") == "" || !strings.Contains(bodyOf(t, resp), "#overloaded") {
			t.Errorf("%s beyond the bound: %d", key, resp.StatusCode)
		}
	}
	close(proceed)
	wg.Wait()
	if s := f.do(t, "GET", "/v1/items", nil).StatusCode; s != 200 {
		t.Errorf("afterwards: %d", s)
	}
	if f.admitter.calls.Load() != 4 {
		t.Errorf("%d decisions, want 4", f.admitter.calls.Load())
	}
	loads := f.Handler.current.Load().routes[0].shedder.perTenant
	for i := range loads.shards {
		if left := loads.shards[i].loads; len(left) != 0 {
			t.Errorf("tenants without requests are remembered: %v", left)
		}
	}
}

func TestNotReadyServesNothing(t *testing.T) {
	f := newFixture(t, nil, nil)
	f.Handler.opts.Ready = func() bool { return false }
	resp := f.do(t, "GET", "/v1/items", nil)
	if resp.StatusCode != 503 || resp.Header.Get("Retry-After") != "1" || f.echo.hits.Load() != 0 {
		t.Errorf("%d %v", resp.StatusCode, resp.Header)
	}
}

// request-path 104: a drained caller that uploads 200 MB is refused before the upload: without 100 Continue if it waits
// for one, and in a readable answer if it does not.
func TestEarlyRefusalOfUploads(t *testing.T) {
	const size = 200 << 20
	f := newFixture(t, nil, nil)
	f.drain(limit.Key{Tenant: "t1", Route: "up"})
	t.Run("with Expect", func(t *testing.T) {
		got := f.raw(t, "POST /v1/upload HTTP/1.1\r\nHost: h\r\nX-Api-Key: k-t1\r\nExpect: 100-continue\r\nContent-Length: 209715200\r\n\r\n")
		if !strings.HasPrefix(got, "HTTP/1.1 429 ") || !strings.Contains(got, "quota-exceeded") {
			t.Errorf("%.100q", got)
		}
	})
	t.Run("without", func(t *testing.T) {
		req, err := http.NewRequest("POST", f.server.URL+"/v1/upload", io.LimitReader(zeros{}, size))
		if err != nil {
			t.Fatal(err)
		}
		req.ContentLength = size
		req.Header.Set("X-Api-Key", "k-t1")
		resp, err := http.DefaultTransport.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		if err != nil || resp.StatusCode != 429 || !strings.Contains(string(body), "quota-exceeded") {
			t.Errorf("%d %q %v", resp.StatusCode, body, err)
		}
	})
	t.Run("a client that writes before it reads", func(t *testing.T) {
		conn := f.dial(t)
		const most = 4 << 20 // Within what is drained.
		request := "POST /v1/upload HTTP/1.1\r\nHost: h\r\nX-Api-Key: k-t1\r\nContent-Length: 4194304\r\n\r\n"
		if _, err := io.Copy(conn, io.MultiReader(strings.NewReader(request), io.LimitReader(zeros{}, most))); err != nil {
			t.Fatal(err)
		}
		answer, err := io.ReadAll(conn)
		if err != nil || !strings.HasPrefix(string(answer), "HTTP/1.1 429 ") {
			t.Errorf("%.60q, %v", answer, err)
		}
	})
	if f.echo.hits.Load() != 0 {
		t.Error("a refused upload reached the upstream")
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// A body that is announced too large is refused at once, one that turns out to be is cut off.
func TestBodyBound(t *testing.T) {
	f := newFixture(t, func(w http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) }, func(c *config.Config) {
		c.Routes[2].MaxBodyBytes = 10
	})
	for name, request := range map[string]string{
		"announced": "Content-Length: 11\r\n\r\nhello world",
		"chunked":   "Transfer-Encoding: chunked\r\n\r\nb\r\nhello world\r\n0\r\n\r\n",
	} {
		got := f.raw(t, "POST /v1/upload HTTP/1.1\r\nHost: h\r\nX-Api-Key: k-t1\r\nConnection: close\r\n"+request)
		if !strings.HasPrefix(got, "HTTP/1.1 413 ") || !strings.Contains(got, "#body-too-large") {
			t.Errorf("%s: %.100q", name, got)
		}
	}
	if got := f.raw(t, "POST /v1/upload HTTP/1.1\r\nHost: h\r\nX-Api-Key: k-t1\r\nConnection: close\r\nContent-Length: 10\r\n\r\nhello worl"); !strings.HasPrefix(got, "HTTP/1.1 200 ") {
		t.Errorf("within the bound: %.100q", got)
	}
}
