package proxy

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"partidor.dev/partidor/gateway/internal/config"
)

// Upstream is a service behind the gateway. It keeps its connections, breakers and health checks for as long as its
// configuration stays the same, whatever is reloaded around it. It is safe for use by many goroutines.
type Upstream struct {
	name    string
	config  config.Upstream
	targets []*target
	picker  picker
	logger  *slog.Logger

	mu         sync.Mutex
	transports map[time.Duration]*http.Transport // by the time an answer may take

	stop context.CancelFunc
	done sync.WaitGroup
}

// NewUpstream starts an upstream's health checks. Close ends them. Targets that old, the upstream under the configuration before, has
// as well keep their breakers and what was found of their health; nil for none.
func NewUpstream(name string, c config.Upstream, logger *slog.Logger, old *Upstream) (*Upstream, error) {
	u := &Upstream{name: name, config: c, logger: logger, transports: map[time.Duration]*http.Transport{}}
	for i, tc := range c.Targets {
		t, err := newTarget(tc, c.Breaker)
		if err != nil {
			return nil, fmt.Errorf("upstreams.%s.targets[%d]: %w", name, i, err)
		}
		if old != nil {
			t.goOn(old, u)
		}
		u.targets = append(u.targets, t)
	}
	u.picker = newPicker(c.Balance, u.targets)
	// Files that cannot be read are found now, not by the first request.
	if _, err := u.transport(max(c.Health.Timeout, time.Second)); err != nil {
		return nil, fmt.Errorf("upstreams.%s.tls: %w", name, err)
	}
	ctx, stop := context.WithCancel(context.Background())
	u.stop = stop
	if c.Health.Path != "" {
		for _, t := range u.targets {
			u.done.Go(func() { u.watch(ctx, t) })
		}
	}
	return u, nil
}

// Close ends health checks and idle connections. Requests in flight go on.
func (u *Upstream) Close() {
	u.stop()
	u.done.Wait()
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, t := range u.transports {
		t.CloseIdleConnections()
	}
}

// transport is the one for answers that must begin within timeout. Connections are shared by the routes that agree on it.
func (u *Upstream) transport(timeout time.Duration) (*http.Transport, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if t := u.transports[timeout]; t != nil {
		return t, nil
	}
	t, err := newTransport(u.config, timeout, u.logger)
	if err != nil {
		return nil, err
	}
	u.transports[timeout] = t
	return t, nil
}
