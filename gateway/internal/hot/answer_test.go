package hot

import (
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"partidor.dev/partidor/gateway/internal/config"
	"partidor.dev/partidor/gateway/internal/hot/admit"
	"partidor.dev/partidor/shared/limit"
)

func decide(d limit.Decision) func(admit.Request) limit.Decision {
	return func(r admit.Request) limit.Decision {
		d.Key = limit.Key{Tenant: r.Tenant, Route: r.Route}
		return d
	}
}

// request-path 46: the 429s of every limiter, and the 503s, carry a whole number of seconds, at least 1; limits 37: net/http
// clients can read it.
func TestEveryRefusalSaysWhen(t *testing.T) {
	rule := &limit.Rule{Capacity: 200, Refill: 100, PeriodSeconds: 1}
	day := &limit.Rule{Capacity: 1000, PeriodSeconds: 1, Algorithm: limit.FixedWindow, Calendar: limit.CalendarDay}
	tests := []struct {
		name   string
		edit   func(*config.Config)
		d      limit.Decision
		status int
		least  int
	}{
		{"token bucket", nil, limit.Decision{Outcome: limit.Refused, Rule: rule, Share: limit.Whole, RetryAfter: 4 * time.Millisecond}, 429, 1},
		{"quota", nil, limit.Decision{Outcome: limit.Refused, Rule: day, Share: limit.Whole, RetryAfter: time.Hour, ResetAfter: time.Hour}, 429, 3600},
		{"fallback", nil, limit.Decision{Outcome: limit.Refused, Rule: rule, Share: limit.Whole, Source: limit.SourceFallback, Degraded: true, RetryAfter: 1500 * time.Millisecond}, 429, 2},
		{"fallback, only the reduced share was passed", nil, limit.Decision{Outcome: limit.Unable, Rule: rule, Share: limit.Whole, Source: limit.SourceFallback, Degraded: true}, 503, 1},
		{"guard", func(c *config.Config) {
			c.Addresses.Guard = config.Guard{Requests: 1, Window: time.Hour}
		}, limit.Decision{Rule: rule, Share: limit.Whole, Remaining: 1}, 429, 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := newFixture(t, nil, tt.edit)
			f.admitter.answer = decide(tt.d)
			resp := f.do(t, "GET", "/v1/items", nil)
			if resp.StatusCode == 200 {
				resp = f.do(t, "GET", "/v1/items", nil)
			}
			s, err := strconv.Atoi(resp.Header.Get("Retry-After"))
			if resp.StatusCode != tt.status || err != nil || s < max(1, tt.least) {
				t.Errorf("%d, Retry-After %q", resp.StatusCode, resp.Header.Get("Retry-After"))
			}
			if resp.Header.Get("Cache-Control") != "no-store" {
				t.Errorf("a cache may keep it: %v", resp.Header)
			}
		})
	}
}

// request-path 50: an upstream's own list items stay beside ours, its X- headers do not.
func TestUpstreamSendsTheSameHeaders(t *testing.T) {
	f := newFixture(t, func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("RateLimit", `"up";r=3;t=5`)
		h.Set("RateLimit-Policy", `"up";q=5;w=5`)
		h.Set("X-RateLimit-Remaining", "3")
		h.Set("X-RateLimit-Limit", "5")
	}, nil)
	h := f.do(t, "GET", "/v1/items", nil).Header
	want := map[string][]string{
		"Ratelimit":             {`"up";r=3;t=5`, `"items";r=199;t=2`},
		"Ratelimit-Policy":      {`"up";q=5;w=5`, `"items";q=200;w=2`},
		"X-Ratelimit-Remaining": {"199"},
		"X-Ratelimit-Limit":     {"200"},
	}
	for name, values := range want {
		if d := cmp.Diff(values, h[name]); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
}

// request-path 49: with the headers switched off a 429 still has its body and Retry-After.
func TestHeadersSwitchedOff(t *testing.T) {
	f := newFixture(t, nil, nil)
	f.admitter.rule.HideHeaders = true
	f.drain(limit.Key{Tenant: "t1", Route: "items"})
	resp := f.do(t, "GET", "/v1/items", nil)
	for name := range resp.Header {
		if strings.Contains(strings.ToLower(name), "ratelimit") {
			t.Errorf("%s: %q", name, resp.Header[name])
		}
	}
	if resp.StatusCode != 429 || resp.Header.Get("Retry-After") == "" || !strings.Contains(bodyOf(t, resp), "quota-exceeded") {
		t.Errorf("%d %v", resp.StatusCode, resp.Header)
	}
}

// request-path 56: the body names our policies and nothing of the inside.
func TestBodyLeaksNothing(t *testing.T) {
	f := newFixture(t, nil, nil)
	f.admitter.answer = decide(limit.Decision{
		Outcome: limit.Refused, Rule: &limit.Rule{Capacity: 200, Refill: 100, PeriodSeconds: 1}, Share: 700_000, RetryAfter: time.Second,
	})
	resp := f.do(t, "GET", "/v1/items", http.Header{"X-Api-Key": {"k-t1"}, "Accept": {"text/html"}})
	body := bodyOf(t, resp)
	var fields map[string]any
	if err := json.Unmarshal([]byte(body), &fields); err != nil {
		t.Fatal(err)
	}
	names := []string{}
	for name := range fields {
		names = append(names, name)
	}
	slices.Sort(names)
	if d := cmp.Diff([]string{"status", "title", "type", "violated-policies"}, names); d != "" {
		t.Error(d)
	}
	for _, secret := range []string{"140", "700", "redis", "Redis", `"eu"`, "rl:"} {
		if strings.Contains(body, secret) {
			t.Errorf("the body leaks %q: %s", secret, body)
		}
	}
}

// limits 40: a cost that can never fit is told apart from one that does not fit now.
func TestTooLarge(t *testing.T) {
	f := newFixture(t, nil, nil)
	f.admitter.answer = decide(limit.Decision{Outcome: limit.TooLarge, Rule: &limit.Rule{Capacity: 10, Refill: 1, PeriodSeconds: 1}, Share: limit.Whole, Remaining: 10})
	resp := f.do(t, "GET", "/v1/items", nil)
	if resp.StatusCode != 413 || resp.Header.Get("Retry-After") != "" || !strings.Contains(bodyOf(t, resp), "#cost-above-capacity") ||
		resp.Header.Get("X-RateLimit-Remaining") != "10" {
		t.Errorf("%d %v", resp.StatusCode, resp.Header)
	}
}

// request-path 55: drained gRPC callers get their own kind of answer, over HTTP/2, unary and streaming alike.
func TestGRPCRefusal(t *testing.T) {
	f := newFixture(t, nil, func(c *config.Config) {
		c.Server.H2C = true
		c.Routes = append(c.Routes, config.Route{ID: "rpc", Path: "/pkg.Service/", Upstream: "echo"})
	})
	f.drain(limit.Key{Tenant: "t1", Route: "rpc"})
	client := &http.Transport{Protocols: new(http.Protocols)}
	client.Protocols.SetUnencryptedHTTP2(true)
	defer client.CloseIdleConnections()
	never, _ := io.Pipe() // A stream whose end is not in sight.
	for name, body := range map[string]io.Reader{"unary": strings.NewReader("\x00\x00\x00\x00\x00"), "streaming": never} {
		req, err := http.NewRequest("POST", f.server.URL+"/pkg.Service/Method", body)
		if err != nil {
			t.Fatal(err)
		}
		req.Header = http.Header{"X-Api-Key": {"k-t1"}, "Content-Type": {"application/grpc"}, "Te": {"trailers"}}
		resp, err := client.RoundTrip(req)
		if err != nil {
			t.Fatal(name, err)
		}
		b, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(name, err)
		}
		resp.Body.Close()
		if resp.StatusCode != 200 || len(b) != 0 || resp.Header.Get("Grpc-Status") != "8" || resp.Header.Get("Grpc-Message") == "" ||
			resp.Header.Get("Content-Type") != "application/grpc" || resp.ProtoMajor != 2 {
			t.Errorf("%s: %d %v %q", name, resp.StatusCode, resp.Header, b)
		}
	}
	if f.echo.hits.Load() != 0 {
		t.Error("a refused call reached the upstream")
	}
}

// A route's own bodies replace the problem details; its header edits apply; its path is rewritten; its bucket is the same.
func TestRouteOptions(t *testing.T) {
	f := newFixture(t, nil, func(c *config.Config) {
		r := &c.Routes[1]
		r.Rewrite = config.Rewrite{Path: "/v2/things/{id}", Host: "inside.example"}
		r.RequestHeaders = config.HeaderEdit{Remove: []string{"x-debug"}, Set: map[string]string{"x-source": "gateway"}, Add: map[string]string{"x-tag": "b"}}
		r.ResponseHeaders = config.HeaderEdit{Remove: []string{"Server"}, Set: map[string]string{"X-Frame-Options": "DENY"}}
		r.Bodies = map[int]config.Body{429: {ContentType: "application/json", Text: `{"wait":{retry_after}}`}}
	})
	resp := f.do(t, "GET", "/v1/items/a%20b?q=1", http.Header{"X-Api-Key": {"k-t1"}, "X-Debug": {"1"}, "X-Source": {"client"}, "X-Tag": {"a"}})
	got := f.echo.last.Load()
	if got.URL.RequestURI() != "/v2/things/a%20b?q=1" || got.Host != "inside.example" || got.Header.Get("X-Debug") != "" ||
		got.Header.Get("X-Source") != "gateway" || !cmp.Equal(got.Header["X-Tag"], []string{"a", "b"}) {
		t.Errorf("upstream got %s %s %v", got.Host, got.URL.RequestURI(), got.Header)
	}
	if resp.Header.Get("X-Frame-Options") != "DENY" {
		t.Errorf("client got %v", resp.Header)
	}
	f.drain(limit.Key{Tenant: "t1", Route: "item"})
	if resp := f.do(t, "GET", "/v1/items/7", nil); bodyOf(t, resp) != `{"wait":1}` || resp.Header.Get("Content-Type") != "application/json" {
		t.Errorf("%v", resp.Header)
	}
}

func TestUnlimitedRoute(t *testing.T) {
	f := newFixture(t, nil, func(c *config.Config) { c.Routes[4].Unlimited = true })
	resp := f.do(t, "GET", "/v1/open", http.Header{})
	if resp.StatusCode != 200 || f.admitter.calls.Load() != 0 || resp.Header.Get("RateLimit") != "" {
		t.Errorf("%d, %d decisions, %v", resp.StatusCode, f.admitter.calls.Load(), resp.Header)
	}
}
