package hot

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"partidor.dev/partidor/gateway/internal/config"
)

// Headers with which a client could speak for a proxy in front of the gateway, or mean another request than the one that is
// matched and limited, do not pass. Those that the operator lists do.
func TestClaimsOfClientsDoNotPass(t *testing.T) {
	forged := []string{
		"Forwarded", "X-Forwarded", "X-Forwarded-Port", "X-Forwarded-Prefix", "X-Forwarded-Server", "X-Forwarded-Scheme", "X-Forwarded-Ssl",
		"X-Forwarded-User", "X-Forwarded-Email", "X-Forwarded-Client-Cert", "X-Forwarded-Uri", "X-Forwarded-Method", "X-Original-Forwarded-For",
		"True-Client-IP", "Client-IP", "X-Client-IP", "X-Cluster-Client-IP", "X-Remote-IP", "X-Remote-Addr", "X-Originating-IP", "X-ProxyUser-Ip",
		"CF-Connecting-IP", "CF-Connecting-IPv6", "Fastly-Client-IP", "Fly-Client-IP", "X-Envoy-External-Address", "X-Azure-ClientIP",
		"Client-Cert", "Client-Cert-Chain", "X-Client-Cert", "X-SSL-Client-Cert", "X-SSL-Client-Verify", "Front-End-Https", "X-Scheme",
		"X-HTTP-Method", "X-HTTP-Method-Override", "X-Method-Override", "X-Original-Method", "X-Original-URL", "X-Original-URI", "X-Rewrite-URL",
		"X-Original-Host", "X-Host", "X-HTTP-Host-Override", "Proxy",
	}
	for _, pass := range [][]string{nil, {"x-forwarded-port", "X-HTTP-Method-Override"}} {
		f := newFixture(t, nil, func(c *config.Config) { c.Server.PassHeaders = pass })
		h := http.Header{"X-Api-Key": {"k-t1"}, "X-Request-Id": {"7"}, "X-Custom": {"8"}}
		for _, name := range forged {
			h[http.CanonicalHeaderKey(name)] = []string{"forged"}
		}
		if resp := f.do(t, "GET", "/v1/items", h); resp.StatusCode != 200 {
			t.Fatalf("status %d", resp.StatusCode)
		}
		got := f.echo.last.Load().Header
		for name, values := range got {
			listed := slices.ContainsFunc(pass, func(p string) bool { return strings.EqualFold(p, name) })
			if slices.Contains(values, "forged") != listed {
				t.Errorf("with %v listed, upstream sees %s: %q", pass, name, values)
			}
		}
		if len(pass) > 0 && got.Get("X-Forwarded-Port") != "forged" || got.Get("X-Request-Id") != "7" || got.Get("X-Custom") != "8" {
			t.Errorf("with %v listed, upstream sees %v", pass, got)
		}
	}
}

// The query reaches the upstream byte for byte, also where Go would read it otherwise; a credential is found however upstreams
// may cut parameters apart.
func TestQueryPassesAsItCame(t *testing.T) {
	f := newFixture(t, nil, nil)
	for _, query := range []string{"b=1;c=2&a=%zz", "z=1&a=2&z=0", "q=100%", "a+b=%20&&=&x", "filter[a]={1}|2", "a=/../%2e%2e/", "\xfc=\xff", ""} {
		got := f.raw(t, "GET /v1/items?"+query+" HTTP/1.1\r\nHost: h\r\nX-Api-Key: k-t1\r\nConnection: close\r\n\r\n")
		if !strings.HasPrefix(got, "HTTP/1.1 200 ") {
			t.Fatalf("%q: %.60q", query, got)
		}
		if uri := f.echo.last.Load().RequestURI; uri != "/v1/items?"+query {
			t.Errorf("upstream got %q, want the query %q", uri, query)
		}
	}
	for _, query := range []string{"a=1;api_key=k-t2", "a=%zz&api_key=k-t2", "api%5fkey=k-t2;"} {
		before := f.echo.hits.Load()
		got := f.raw(t, "GET /v1/items?"+query+" HTTP/1.1\r\nHost: h\r\nX-Api-Key: k-t1\r\nConnection: close\r\n\r\n")
		if !strings.HasPrefix(got, "HTTP/1.1 400 ") || f.echo.hits.Load() != before {
			t.Errorf("%q: %.60q", query, got)
		}
	}
}

// No route serves CONNECT, which would make a tunnel past the limiter, and only one that lists it TRACE.
func TestConnectAndTrace(t *testing.T) {
	f := newFixture(t, nil, func(c *config.Config) {
		c.Routes = append(c.Routes, config.Route{ID: "rest", Default: true, Upstream: "echo", Anonymous: true},
			config.Route{ID: "trace", Methods: []string{"TRACE"}, Path: "/v1/trace", Upstream: "echo"})
	})
	for line, want := range map[string]int{
		"CONNECT h:443": 400, "CONNECT /v1/ws": 404, "CONNECT /nowhere": 404, "TRACE /v1/ws": 404, "TRACE /nowhere": 404, "TRACE /v1/trace": 200,
		"BREW /v1/ws": 200, "GET /nowhere": 200,
	} {
		before := f.echo.hits.Load()
		got := f.raw(t, line+" HTTP/1.1\r\nHost: h\r\nX-Api-Key: k-t1\r\nConnection: close\r\n\r\n")
		if !strings.HasPrefix(got, fmt.Sprintf("HTTP/1.1 %d ", want)) || f.echo.hits.Load()-before != int64(map[bool]int{true: 1}[want == 200]) {
			t.Errorf("%s: %.60q and %d hits, want %d", line, got, f.echo.hits.Load()-before, want)
		}
	}
}

// An upload whose upstream closes while the client stalls is told by the end of the route's total timeout, not only when the
// client has been silent for too long.
func TestUpstreamClosesUnderAStalledUpload(t *testing.T) {
	f := newFixture(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.CopyN(io.Discard, r.Body, 3)
		panic(http.ErrAbortHandler)
	}, func(c *config.Config) { c.Routes[2].Timeouts.Total = shortTime })
	conn := f.dial(t)
	if _, err := io.WriteString(conn, "POST /v1/upload HTTP/1.1\r\nHost: h\r\nX-Api-Key: k-t1\r\nContent-Length: 10\r\n\r\nabc"); err != nil {
		t.Fatal(err)
	}
	// The silence of this client would be borne for body_timeout, 60 s, as long as dial's deadline.
	if answer, err := io.ReadAll(conn); err != nil || !strings.HasPrefix(string(answer), "HTTP/1.1 ") {
		t.Errorf("%.60q, %v", answer, err)
	} else if status := string(answer[9:12]); status != "408" && status != "502" && status != "504" {
		t.Errorf("status %s", status)
	}
}
