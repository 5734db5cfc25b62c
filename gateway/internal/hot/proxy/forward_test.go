package proxy

import (
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"partidor.dev/partidor/gateway/internal/config"
	"partidor.dev/partidor/gateway/internal/hot/respond"
	"partidor.dev/partidor/gateway/internal/hot/route"
)

// observer counts what it hears and answers failures with their status.
type observer struct {
	attempts atomic.Int64
	targets  []string
	cause    error
}

func (o *observer) Response(http.Header, int) {}
func (o *observer) Attempt(_ *http.Request, target string) {
	o.attempts.Add(1)
	o.targets = append(o.targets, target)
}
func (o *observer) Answered(int, error) {}
func (o *observer) Failed(w http.ResponseWriter, p *respond.Problem, cause error) {
	o.cause = cause
	if p != nil {
		w.WriteHeader(p.Status)
	}
}

type server struct {
	*httptest.Server
	hits atomic.Int64
}

func serve(t *testing.T, h http.HandlerFunc) *server {
	t.Helper()
	s := &server{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.hits.Add(1)
		h(w, r)
	}))
	t.Cleanup(s.Close)
	return s
}

// nobody is an address at which nobody listens.
func nobody(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return "http://" + l.Addr().String()
}

func upstream(t *testing.T, edit func(*config.Upstream), urls ...string) *Upstream {
	t.Helper()
	var u config.Upstream
	for _, url := range urls {
		u.Targets = append(u.Targets, config.Target{URL: url})
	}
	if edit != nil {
		edit(&u)
	}
	c := config.Config{Upstreams: map[string]config.Upstream{"u": u}}
	c.SetDefaults()
	up, err := NewUpstream("u", c.Upstreams["u"], slog.New(slog.DiscardHandler), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(up.Close)
	return up
}

func forward(t *testing.T, u *Upstream, r *http.Request, edit func(*config.Route)) (*httptest.ResponseRecorder, *observer) {
	t.Helper()
	c := config.Config{Routes: []config.Route{{ID: "r", Path: "/", Upstream: "u"}}}
	if edit != nil {
		edit(&c.Routes[0])
	}
	c.SetDefaults()
	table, err := route.Compile(c.Routes)
	if err != nil {
		t.Fatal(err)
	}
	p, err := NewRoute(&table.Routes()[0], u, Settings{TenantHeader: "X-Tenant-Id"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	o := &observer{}
	w := httptest.NewRecorder()
	p.Forward(r.Context(), w, r, &Request{Path: r.URL.EscapedPath(), Tenant: "t1", Client: "192.0.2.1", Observer: o})
	return w, o
}

func repeats(r *config.Route) {
	r.Retry = config.Retry{Attempts: 3, Delay: time.Microsecond}
}

// A target that cannot be reached is passed over for another, with any method, as no byte was sent.
func TestUnreachableTargetIsPassedOver(t *testing.T) {
	good := serve(t, func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		_, _ = w.Write(b)
	})
	for range 4 { // Both orders.
		r := httptest.NewRequest("POST", "/x", strings.NewReader("body"))
		w, _ := forward(t, upstream(t, nil, nobody(t), good.URL), r, repeats)
		if w.Code != 200 || w.Body.String() != "body" {
			t.Errorf("%d %q", w.Code, w.Body)
		}
	}
}

// Once a POST's bytes were sent it is not sent again, however the upstream ends.
func TestPostIsNotRepeatedAfterBytesWereSent(t *testing.T) {
	bad := serve(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.ReadAll(r.Body)
		panic(http.ErrAbortHandler)
	})
	w, o := forward(t, upstream(t, nil, bad.URL), httptest.NewRequest("POST", "/x", strings.NewReader("body")), repeats)
	if w.Code != 502 || bad.hits.Load() != 1 || o.cause == nil {
		t.Errorf("%d after %d attempts, %v", w.Code, bad.hits.Load(), o.cause)
	}
	w, _ = forward(t, upstream(t, nil, bad.URL), httptest.NewRequest("GET", "/x", nil), repeats)
	if w.Code != 502 || bad.hits.Load() < 1+3 {
		t.Errorf("GET: %d after %d attempts", w.Code, bad.hits.Load()-1)
	}
}

// When all repeats fail, the upstream's own last answer goes to the client.
func TestLastAnswerIsPassedOn(t *testing.T) {
	bad := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusServiceUnavailable)
		_, _ = io.WriteString(w, "closed for the night")
	})
	w, o := forward(t, upstream(t, nil, bad.URL), httptest.NewRequest("GET", "/x", nil), repeats)
	if w.Code != 503 || w.Body.String() != "closed for the night" || o.attempts.Load() != 3 {
		t.Errorf("%d %q after %d attempts", w.Code, w.Body, o.attempts.Load())
	}
}

// An upstream whose breaker is open is not asked.
func TestOpenBreaker(t *testing.T) {
	bad := serve(t, func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(http.StatusBadGateway) })
	u := upstream(t, func(c *config.Upstream) { c.Breaker = config.Breaker{Failures: 5, Window: 5, Delay: time.Hour} }, bad.URL)
	for range 5 {
		forward(t, u, httptest.NewRequest("GET", "/x", nil), nil)
	}
	w, _ := forward(t, u, httptest.NewRequest("GET", "/x", nil), nil)
	if w.Code != 503 || bad.hits.Load() != 5 {
		t.Errorf("%d after %d requests", w.Code, bad.hits.Load())
	}
}

// A target that answers its health checks badly gets no requests until it answers well.
func TestHealthChecks(t *testing.T) {
	var sick atomic.Bool
	asked := make(chan struct{})
	health := func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/healthz" {
			if sick.Load() {
				w.WriteHeader(http.StatusInternalServerError)
			}
			select {
			case asked <- struct{}{}:
			case <-r.Context().Done():
			}
		}
	}
	one, two := serve(t, health), serve(t, func(w http.ResponseWriter, r *http.Request) {})
	u := upstream(t, func(c *config.Upstream) {
		c.Health = config.Health{Path: "/healthz", Interval: time.Millisecond, Timeout: 5 * time.Second, Unhealthy: 2, Healthy: 2}
	}, one.URL, two.URL)
	until := func(down bool) {
		for u.targets[0].down.Load() != down {
			<-asked
		}
	}
	<-asked
	sick.Store(true)
	until(true)
	for range 4 {
		if _, o := forward(t, u, httptest.NewRequest("GET", "/x", nil), nil); o.targets[0] != two.Listener.Addr().String() {
			t.Errorf("a sick target was sent a request")
		}
	}
	sick.Store(false)
	until(false)
	go func() {
		for range asked { // Lets the last check end.
		}
	}()
	u.Close()
	close(asked)
}

// Requests in flight are counted at their target and given back, whatever happens.
func TestInFlightIsGivenBack(t *testing.T) {
	good := serve(t, func(w http.ResponseWriter, r *http.Request) {})
	u := upstream(t, nil, nobody(t), good.URL)
	for range 10 {
		forward(t, u, httptest.NewRequest("GET", "/x", nil), repeats)
	}
	for _, target := range u.targets {
		if n := target.inFlight.Load(); n != 0 {
			t.Errorf("%s has %d in flight", target.url, n)
		}
	}
}

// The target's own path goes in front; encodings stay as they were normalised.
func TestPaths(t *testing.T) {
	var got atomic.Value
	s := serve(t, func(w http.ResponseWriter, r *http.Request) { got.Store(r.RequestURI) })
	for _, tt := range []struct {
		base, path string
		rewrite    config.Rewrite
		want       string
	}{
		{"", "/a%20b/%C3%BC?q=%20", config.Rewrite{}, "/a%20b/%C3%BC?q=%20"},
		{"/base/", "/a", config.Rewrite{}, "/base/a"},
		{"", "/files/a/b", config.Rewrite{StripPrefix: "/files"}, "/a/b"},
		{"", "/files", config.Rewrite{StripPrefix: "/files"}, "/"},
		{"", "/filesystem", config.Rewrite{StripPrefix: "/files"}, "/filesystem"},
		{"", "/files/a", config.Rewrite{StripPrefix: "/files/", AddPrefix: "/store/"}, "/store/a"},
		{"/base", "/x", config.Rewrite{Path: "/v2/fixed"}, "/base/v2/fixed"},
		{"", "/a%2Fb", config.Rewrite{}, "/a%2Fb"},
	} {
		u := upstream(t, nil, s.URL+tt.base)
		forward(t, u, httptest.NewRequest("GET", tt.path, nil), func(r *config.Route) { r.Rewrite = tt.rewrite })
		if got.Load() != tt.want {
			t.Errorf("%s%s with %+v: %s, want %s", tt.base, tt.path, tt.rewrite, got.Load(), tt.want)
		}
	}
}
