package proxy

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"partidor.dev/partidor/gateway/internal/config"
	"partidor.dev/partidor/shared/testenv"
)

// A target that was found down stays so under a changed configuration, until it is found up; a new one is up until it is found
// down, and without health checks nothing is down.
func TestHealthIsKeptOverAReload(t *testing.T) {
	sick := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500) }))
	t.Cleanup(sick.Close)
	c := config.Upstream{
		Targets: []config.Target{{URL: sick.URL}},
		Health:  config.Health{Path: "/healthz", Interval: time.Millisecond, Timeout: 10 * time.Second, Healthy: 1, Unhealthy: 1},
	}
	logger := slog.New(slog.DiscardHandler)
	build := func(c config.Upstream, old *Upstream) *Upstream {
		u, err := NewUpstream("u", c, logger, old)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(u.Close)
		return u
	}
	first := build(c, nil)
	testenv.Eventually(t, time.Minute, func() error {
		if !first.targets[0].down.Load() {
			return errNoTarget
		}
		return nil
	})
	c.Health.Interval = time.Hour
	c.Health.Unhealthy = 1_000_000 // so that nothing is found anew
	c.Targets = append(c.Targets, config.Target{URL: "http://127.0.0.1:1"})
	c.Targets[0], c.Targets[1] = c.Targets[1], c.Targets[0]
	second := build(c, first)
	if second.targets[0].down.Load() || !second.targets[1].down.Load() {
		t.Errorf("new target down: %v, the one that was down: %v", second.targets[0].down.Load(), second.targets[1].down.Load())
	}
	c.Health = config.Health{}
	if third := build(c, second); third.targets[1].down.Load() {
		t.Error("down without health checks")
	}
}
