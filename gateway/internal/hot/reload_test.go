package hot

import (
	"context"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"partidor.dev/partidor/gateway/internal/config"
)

func reloaded(t *testing.T, f *fixture, edit func(*config.Config)) error {
	t.Helper()
	c := fixtureConfig(f.echo.URL)
	edit(c)
	c.SetDefaults()
	return f.Handler.Reload(c)
}

// A new configuration holds for the next request; the ones in flight end under the old one; upstreams that stay the same
// keep their connections.
func TestReload(t *testing.T) {
	entered, proceed := make(chan struct{}), make(chan struct{})
	f := newFixture(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/v1/items" {
			close(entered)
			<-proceed
		}
		_, _ = io.WriteString(w, r.URL.Path)
	}, nil)
	upstream := f.Handler.current.Load().upstreams["echo"]
	var wg sync.WaitGroup
	wg.Go(func() {
		if resp := f.do(t, "GET", "/v1/items", nil); resp.StatusCode != 200 || bodyOf(t, resp) != "/v1/items" {
			t.Errorf("the request in flight: %d", resp.StatusCode)
		}
	})
	<-entered
	if err := reloaded(t, f, func(c *config.Config) { c.Routes[0].Path = "/v2/items" }); err != nil {
		t.Fatal(err)
	}
	if s := f.do(t, "GET", "/v1/items", nil).StatusCode; s != 404 {
		t.Errorf("the old path: %d", s)
	}
	if s := f.do(t, "GET", "/v2/items", nil).StatusCode; s != 200 {
		t.Errorf("the new path: %d", s)
	}
	close(proceed)
	wg.Wait()
	if f.Handler.current.Load().upstreams["echo"] != upstream {
		t.Error("an unchanged upstream was replaced")
	}
	if err := reloaded(t, f, func(c *config.Config) {
		u := c.Upstreams["echo"]
		u.MaxConnections = 7
		c.Upstreams["echo"] = u
	}); err != nil {
		t.Fatal(err)
	}
	if f.Handler.current.Load().upstreams["echo"] == upstream {
		t.Error("a changed upstream was kept")
	}
}

// Every section that is reloadable takes effect with the next request.
func TestEverySectionIsReloaded(t *testing.T) {
	f := newFixture(t, nil, nil)
	other := newEcho(t, nil)
	for name, tt := range map[string]struct {
		edit   func(*config.Config)
		header http.Header
		shows  func(*http.Response) bool
	}{
		"identity": {func(c *config.Config) { c.Identity.Header = "X-Other-Key" }, http.Header{"X-Other-Key": {"k-t1"}},
			func(r *http.Response) bool { return r.StatusCode == 200 }},
		"addresses": {func(c *config.Config) { c.Addresses.Deny = []config.AddressEntry{{Network: "127.0.0.0/8"}} }, nil,
			func(r *http.Response) bool { return r.StatusCode == 403 }},
		"cors": {withCORS, http.Header{"X-Api-Key": {"k-t1"}, "Origin": {origin}},
			func(r *http.Response) bool { return r.Header.Get("Access-Control-Allow-Origin") == origin }},
		"upstreams": {func(c *config.Config) {
			c.Upstreams["echo"] = config.Upstream{Targets: []config.Target{{URL: other.URL}}}
		}, nil,
			func(*http.Response) bool { return other.hits.Load() == 1 }},
		"routes": {func(c *config.Config) { c.Routes[0].MaxConcurrent, c.Routes[0].Methods = 1, []string{"POST"} }, nil,
			func(r *http.Response) bool { return r.StatusCode == 404 }},
		"server.underscore_headers": {func(c *config.Config) { c.Server.UnderscoreHeaders = []string{"X_Y"} }, http.Header{"X-Api-Key": {"k-t1"}, "X_Y": {"1"}},
			func(*http.Response) bool {
				return f.echo.last.Load().Header.Get("X_Y") != ""
			}},
		"server.pass_headers": {func(c *config.Config) { c.Server.PassHeaders = []string{"X-Host"} }, http.Header{"X-Api-Key": {"k-t1"}, "X-Host": {"1"}},
			func(*http.Response) bool { return f.echo.last.Load().Header.Get("X-Host") == "1" }},
	} {
		if err := reloaded(t, f, func(*config.Config) {}); err != nil {
			t.Fatal(err)
		}
		if tt.shows(f.do(t, "GET", "/v1/items", tt.header.Clone())) {
			t.Errorf("%s: the case shows nothing", name)
		}
		if err := reloaded(t, f, tt.edit); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if resp := f.do(t, "GET", "/v1/items", tt.header.Clone()); !tt.shows(resp) {
			t.Errorf("%s: not in effect: %d %v", name, resp.StatusCode, resp.Header)
		}
	}
}

// A wrong configuration changes nothing at all.
func TestReloadIsRefusedAsAWhole(t *testing.T) {
	f := newFixture(t, nil, nil)
	before := f.Handler.current.Load()
	for name, edit := range map[string]func(*config.Config){
		"contradiction": func(c *config.Config) {
			c.Routes = append(c.Routes, config.Route{ID: "x", Path: "/{any}/items/7", Upstream: "echo"})
		},
		"missing file": func(c *config.Config) {
			c.Upstreams["more"] = config.Upstream{Targets: []config.Target{{URL: "https://127.0.0.1:1"}}, TLS: config.ClientTLS{CAFile: "/nowhere"}}
		},
	} {
		if err := reloaded(t, f, edit); err == nil {
			t.Errorf("%s: accepted", name)
		}
		if f.Handler.current.Load() != before {
			t.Errorf("%s: took effect", name)
		}
	}
	if s := f.do(t, "GET", "/v1/items", nil).StatusCode; s != 200 {
		t.Errorf("afterwards: %d", s)
	}
}

// A hundred reloads under load fail no request.
func TestReloadUnderLoad(t *testing.T) {
	f := newFixture(t, nil, nil)
	f.admitter.rule.Capacity = 1 << 40
	ctx, stop := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for ctx.Err() == nil {
				if s := f.do(t, "GET", "/v1/items", nil).StatusCode; s != 200 {
					t.Errorf("status %d", s)
					return
				}
			}
		})
	}
	for i := range 100 {
		if err := reloaded(t, f, func(c *config.Config) {
			u := c.Upstreams["echo"]
			u.IdleConnections = 1 + i
			c.Upstreams["echo"] = u
		}); err != nil {
			t.Fatal(err)
		}
	}
	stop()
	wg.Wait()
}

// The guard goes on counting where its section stays the same.
func TestReloadKeepsTheGuard(t *testing.T) {
	guard := func(c *config.Config) { c.Addresses.Guard = config.Guard{Requests: 1, Window: time.Hour} }
	f := newFixture(t, nil, guard)
	f.do(t, "GET", "/v1/items", nil)
	if err := reloaded(t, f, guard); err != nil {
		t.Fatal(err)
	}
	resp := f.do(t, "GET", "/v1/items", nil)
	if resp.StatusCode != 429 || !strings.Contains(bodyOf(t, resp), "from this address") {
		t.Errorf("%d", resp.StatusCode)
	}
}

// The files that people begin with hold no contradiction.
func TestExamplesAreServable(t *testing.T) {
	for _, name := range []string{"gateway.yaml", "reference.yaml"} {
		if _, err := config.Load("../config/testdata/"+name, Check); err != nil {
			t.Error(err)
		}
	}
}
