package hot

import (
	"context"
	"crypto/sha256"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"partidor.dev/partidor/gateway/internal/config"
	"partidor.dev/partidor/gateway/internal/hot/admit"
	"partidor.dev/partidor/gateway/internal/hot/identify"
	"partidor.dev/partidor/shared/limit"
)

// fakeAdmitter has one bucket per key that is never refilled, unless answer says otherwise.
type fakeAdmitter struct {
	mu     sync.Mutex
	rule   limit.Rule
	spent  map[limit.Key]int64
	answer func(admit.Request) limit.Decision
	calls  atomic.Int64
}

func (f *fakeAdmitter) Admit(_ context.Context, _ time.Time, req admit.Request) limit.Decision {
	f.calls.Add(1)
	if f.answer != nil {
		return f.answer(req)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	key := limit.Key{Tenant: req.Tenant, Route: req.Route}
	d := limit.Decision{Key: key, Rule: &f.rule, Share: limit.Whole}
	if f.spent[key]+req.Cost > f.rule.Capacity {
		d.Outcome, d.RetryAfter = limit.Refused, 10*time.Millisecond
	} else {
		f.spent[key] += req.Cost
	}
	d.Remaining = f.rule.Capacity - f.spent[key]
	d.Tokens = float64(d.Remaining)
	d.ResetAfter = time.Duration(f.spent[key]) * 10 * time.Millisecond
	return d
}

func (f *fakeAdmitter) spentBy(tenant, route string) int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.spent[limit.Key{Tenant: tenant, Route: route}]
}

func (f *fakeAdmitter) buckets() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.spent)
}

// fakeTenants knows keys by their text.
type fakeTenants map[string]string

func (f fakeTenants) Tenant(hash [32]byte, _ time.Time) (string, bool) {
	for key, tenant := range f {
		if sha256.Sum256([]byte(key)) == hash {
			return tenant, true
		}
	}
	return "", false
}

// echo is an upstream that counts its requests and tells what it got.
type echo struct {
	*httptest.Server
	hits atomic.Int64
	last atomic.Pointer[http.Request]
}

func newEcho(t *testing.T, handler http.HandlerFunc) *echo {
	t.Helper()
	e := &echo{}
	e.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		e.hits.Add(1)
		e.last.Store(r.Clone(context.Background()))
		if handler != nil {
			handler(w, r)
			return
		}
		_, _ = io.WriteString(w, "echo "+r.URL.RequestURI())
	}))
	e.Config.Protocols = new(http.Protocols)
	e.Config.Protocols.SetHTTP1(true)
	e.Config.Protocols.SetUnencryptedHTTP2(true)
	e.Start()
	t.Cleanup(e.Close)
	return e
}

// fixture is the gateway of the behaviour cases: tenants t1 and t2, the routes items, item, up and ws, one upstream.
type fixture struct {
	*Handler
	admitter *fakeAdmitter
	echo     *echo
	server   *httptest.Server
	log      *lockedBuffer
}

type lockedBuffer struct {
	mu sync.Mutex
	b  strings.Builder
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func fixtureConfig(upstream string) *config.Config {
	return &config.Config{
		Region:    "eu",
		Upstreams: map[string]config.Upstream{"echo": {Targets: []config.Target{{URL: upstream}}}},
		Routes: []config.Route{
			{ID: "items", Methods: []string{"GET"}, Path: "/v1/items", Upstream: "echo"},
			{ID: "item", Path: "/v1/items/{id}", Upstream: "echo"},
			{ID: "up", Methods: []string{"POST"}, Path: "/v1/upload", Upstream: "echo"},
			{ID: "ws", Path: "/v1/ws", Upstream: "echo"},
			{ID: "open", Path: "/v1/open", Upstream: "echo", Anonymous: true},
		},
		Rules: config.Rules{File: "rules.yaml"},
	}
}

// newFixture starts the gateway over real connections. edit changes the configuration before it is completed.
func newFixture(t *testing.T, upstream http.HandlerFunc, edit func(*config.Config)) *fixture {
	t.Helper()
	f := &fixture{
		admitter: &fakeAdmitter{
			rule:  limit.Rule{Capacity: 200, Refill: 100, PeriodSeconds: 1},
			spent: map[limit.Key]int64{},
		},
		echo: newEcho(t, upstream),
		log:  &lockedBuffer{},
	}
	c := fixtureConfig(f.echo.URL)
	if edit != nil {
		edit(c)
	}
	c.SetDefaults()
	if err := c.Validate(); err != nil {
		t.Fatal(err)
	}
	logger := slog.New(slog.NewTextHandler(f.log, nil))
	tenants := fakeTenants{"k-t1": "t1", "k-t2": "t2"}
	h, err := New(Options{
		Config:   c,
		Admitter: f.admitter,
		Tenants:  func() identify.Tenants { return tenants },
		Logger:   logger,
	})
	if err != nil {
		t.Fatal(err)
	}
	f.Handler = h
	f.server = httptest.NewUnstartedServer(h)
	f.server.Config = NewServer(c, h, nil, logger)
	f.server.Start()
	t.Cleanup(func() {
		f.server.Close()
		h.Close()
	})
	return f
}

// do sends a request as t1 unless it carries a key already.
func (f *fixture) do(t *testing.T, method, path string, header http.Header) *http.Response {
	t.Helper()
	req, err := http.NewRequest(method, f.server.URL+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	if header == nil {
		header = http.Header{"X-Api-Key": {"k-t1"}}
	}
	req.Header = header
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	resp.Body = io.NopCloser(strings.NewReader(string(body)))
	return resp
}

func (f *fixture) drain(key limit.Key) {
	f.admitter.mu.Lock()
	defer f.admitter.mu.Unlock()
	f.admitter.spent[key] = f.admitter.rule.Capacity
}

func discard() *slog.Logger { return slog.New(slog.DiscardHandler) }

func bodyOf(t *testing.T, resp *http.Response) string {
	t.Helper()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
