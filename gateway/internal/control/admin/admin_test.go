package admin_test

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"partidor.dev/partidor/gateway/internal/control/admin"
)

var (
	loopback = &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 9090}
	outside  = &net.TCPAddr{IP: net.IPv4(10, 0, 0, 7), Port: 9090}
)

func options(checks ...admin.Check) admin.Options {
	text := func(s string) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, s) })
	}
	return admin.Options{
		Version: map[string]string{"version": "1.2.3"}, Checks: checks, Metrics: text("metrics"), Pages: map[string]http.Handler{"GET /explain": text("explain")},
		Token: "secret", Logger: slog.New(slog.DiscardHandler),
	}
}

func get(h http.Handler, path string, change ...func(*http.Request)) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodGet, path, nil)
	r.Host = "127.0.0.1:9090"
	for _, c := range change {
		c(r)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func finding(level admin.Level, reason string) admin.Check {
	return func() admin.Finding { return admin.Finding{Level: level, Reason: reason, Detail: "why"} }
}

func TestReadinessGivesItsReasons(t *testing.T) {
	type reason struct {
		Reason, Detail string
		Fatal          bool
	}
	for name, c := range map[string]struct {
		checks  []admin.Check
		code    int
		status  string
		reasons []reason
	}{
		"fine":     {[]admin.Check{finding(admin.Fine, "")}, 200, "ready", []reason{}},
		"degraded": {[]admin.Check{finding(admin.Degraded, "stale rules"), finding(admin.Fine, "")}, 200, "degraded", []reason{{"stale rules", "why", false}}},
		"not ready": {[]admin.Check{finding(admin.NotReady, "no rules"), finding(admin.Degraded, "redis away")}, 503, "not ready",
			[]reason{{"no rules", "why", true}, {"redis away", "why", false}}},
	} {
		w := get(admin.Handler(loopback, options(c.checks...)), "/readyz")
		var body struct {
			Status  string
			Reasons []reason
		}
		if err := json.Unmarshal(w.Body.Bytes(), &body); err != nil {
			t.Fatal(err)
		}
		if w.Code != c.code || body.Status != c.status {
			t.Errorf("%s: %d %q, want %d %q", name, w.Code, body.Status, c.code, c.status)
		}
		if d := cmp.Diff(c.reasons, body.Reasons); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
}

// A gateway that is not ready is alive all the same: killing it would help nobody.
func TestHealthIsNotReadiness(t *testing.T) {
	h := admin.Handler(loopback, options(finding(admin.NotReady, "no rules")))
	if w := get(h, "/healthz"); w.Code != http.StatusOK {
		t.Errorf("healthz %d, want 200", w.Code)
	}
}

func TestWhoMaySeeWhat(t *testing.T) {
	token := func(v string) func(*http.Request) {
		return func(r *http.Request) { r.Header.Set("Authorization", v) }
	}
	host := func(v string) func(*http.Request) { return func(r *http.Request) { r.Host = v } }
	for _, c := range []struct {
		name   string
		addr   net.Addr
		path   string
		change func(*http.Request)
		want   int
	}{
		{"metrics on loopback", loopback, "/metrics", nil, 200},
		{"version on loopback", loopback, "/version", nil, 200},
		{"explain on loopback", loopback, "/explain", nil, 200},
		{"profiles on loopback", loopback, "/debug/pprof/cmdline", nil, 200},
		{"localhost by name", loopback, "/metrics", host("localhost:9090"), 200},
		{"IPv6 loopback by name", loopback, "/metrics", host("[::1]:9090"), 200},
		{"a foreign name that resolves here", loopback, "/metrics", host("evil.example:9090"), 403},
		{"health outside", outside, "/healthz", nil, 200},
		{"readiness outside", outside, "/readyz", nil, 200},
		{"metrics outside, no token", outside, "/metrics", nil, 401},
		{"metrics outside, wrong token", outside, "/metrics", token("Bearer secre"), 401},
		{"metrics outside, token as password", outside, "/metrics", token("Basic secret"), 401},
		{"metrics outside", outside, "/metrics", token("Bearer secret"), 200},
		{"scheme in any case", outside, "/metrics", token("bearer secret"), 200},
		{"profiles outside, with token", outside, "/debug/pprof/cmdline", token("Bearer secret"), 404},
		{"unknown", loopback, "/nothing", nil, 404},
	} {
		change := c.change
		if change == nil {
			change = func(*http.Request) {}
		}
		if w := get(admin.Handler(c.addr, options()), c.path, change); w.Code != c.want {
			t.Errorf("%s: %d, want %d", c.name, w.Code, c.want)
		}
	}
	empty := options()
	empty.Token = ""
	if w := get(admin.Handler(outside, empty), "/metrics", token("Bearer ")); w.Code != http.StatusUnauthorized {
		t.Errorf("an empty token opens the port: %d", w.Code)
	}
}

func TestServeEndsWithItsContext(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- admin.Serve(ctx, l, options()) }()
	resp, err := http.Get("http://" + l.Addr().String() + "/version")
	if err != nil {
		t.Fatal(err)
	}
	body, _ := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	if !strings.Contains(string(body), "1.2.3") {
		t.Errorf("version %s", body)
	}
	cancel()
	select {
	case err := <-done:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(5 * time.Second):
		t.Error("does not end")
	}
}
