package hot

import (
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"partidor.dev/partidor/gateway/internal/config"
)

// What a route has in store over a reload: neither retries, nor a trial of a broken upstream, nor room for requests in flight
// come back because the configuration was read again, whatever else was changed in it.
var reloads = map[string]func(*config.Config){
	"unchanged":     func(*config.Config) {},
	"another route": func(c *config.Config) { c.Routes[1].Path = "/v9/items/{id}" },
	"its own upstream": func(c *config.Config) {
		u := c.Upstreams["echo"]
		u.IdleConnections = 7
		c.Upstreams["echo"] = u
	},
	"its own methods": func(c *config.Config) { c.Routes[0].Methods = []string{"GET", "PUT"} },
}

func TestReloadKeepsTheRetryBudget(t *testing.T) {
	spare := func(c *config.Config) {
		c.Upstreams["echo"] = config.Upstream{Targets: c.Upstreams["echo"].Targets, Breaker: config.Breaker{Disabled: true}}
		c.Routes[0].Retry = config.Retry{Attempts: 2, On: []int{503}, Delay: time.Millisecond, Budget: 0.001}
	}
	f := newFixture(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(503) }, spare)
	asked := func() int64 {
		before := f.echo.hits.Load()
		for range 12 {
			f.do(t, "GET", "/v1/items", nil)
		}
		return f.echo.hits.Load() - before
	}
	if n := asked(); n != 12+10 {
		t.Fatalf("12 requests were %d attempts, want 22: the budget begins with 10", n)
	}
	for name, edit := range reloads {
		if err := reloaded(t, f, func(c *config.Config) { spare(c); edit(c) }); err != nil {
			t.Fatal(err)
		}
		if n := asked(); n != 12 {
			t.Errorf("%s: 12 requests were %d attempts, want 12: the budget is spent", name, n)
		}
	}
	// A larger budget is a larger income, not a new fortune.
	if err := reloaded(t, f, func(c *config.Config) { spare(c); c.Routes[0].Retry.Budget = 0.5 }); err != nil {
		t.Fatal(err)
	}
	if n := asked(); n != 12+6 {
		t.Errorf("half a repeat per request: 12 requests were %d attempts, want 18", n)
	}
}

func TestReloadKeepsTheBreaker(t *testing.T) {
	broken := func(c *config.Config) {
		c.Upstreams["echo"] = config.Upstream{Targets: c.Upstreams["echo"].Targets, Breaker: config.Breaker{Failures: 2, Window: 2, Delay: time.Hour}}
	}
	f := newFixture(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(503) }, broken)
	for range 3 {
		f.do(t, "GET", "/v1/items", nil)
	}
	if n := f.echo.hits.Load(); n != 2 {
		t.Fatalf("%d attempts, want 2 until the breaker opens", n)
	}
	for name, edit := range reloads {
		if err := reloaded(t, f, func(c *config.Config) { broken(c); edit(c) }); err != nil {
			t.Fatal(err)
		}
		if s := f.do(t, "GET", "/v1/items", nil).StatusCode; s != 503 || f.echo.hits.Load() != 2 {
			t.Errorf("%s: status %d after %d attempts: the breaker is closed again", name, s, f.echo.hits.Load())
		}
	}
	if err := reloaded(t, f, func(c *config.Config) {
		broken(c)
		u := c.Upstreams["echo"]
		u.Breaker.Failures = 1
		c.Upstreams["echo"] = u
	}); err != nil {
		t.Fatal(err)
	}
	if f.do(t, "GET", "/v1/items", nil); f.echo.hits.Load() != 3 {
		t.Error("another breaker begins closed")
	}
}

func TestReloadKeepsRequestsInFlight(t *testing.T) {
	var first atomic.Bool
	entered, proceed := make(chan struct{}), make(chan struct{})
	narrow := func(c *config.Config) { c.Routes[0].MaxConcurrent = 1 }
	f := newFixture(t, func(http.ResponseWriter, *http.Request) {
		if first.CompareAndSwap(false, true) {
			close(entered)
			<-proceed
		}
	}, narrow)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer close(proceed)
	wg.Go(func() { f.do(t, "GET", "/v1/items", nil) })
	<-entered
	for name, edit := range reloads {
		if err := reloaded(t, f, func(c *config.Config) { narrow(c); edit(c) }); err != nil {
			t.Fatal(err)
		}
		if s := f.do(t, "GET", "/v1/items", nil).StatusCode; s != 503 {
			t.Errorf("%s: a second request in flight: %d", name, s)
		}
	}
}
