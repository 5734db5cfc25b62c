package proxy

import (
	"net/url"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/failsafe-go/failsafe-go/circuitbreaker"

	"partidor.dev/partidor/gateway/internal/config"
)

// target is one address of an upstream.
type target struct {
	url     *url.URL
	prefix  string // Of every path, escaped, without the slash at its end.
	weight  int
	breaker circuitbreaker.CircuitBreaker[any] // nil where disabled
	// down is what health checks say; a target is up until it was found down.
	down     atomic.Bool
	inFlight atomic.Int64
}

func newTarget(c config.Target, b config.Breaker) (*target, error) {
	u, err := url.Parse(c.URL)
	if err != nil {
		return nil, err
	}
	t := &target{url: u, prefix: strings.TrimSuffix(u.EscapedPath(), "/"), weight: max(1, c.Weight)}
	if !b.Disabled {
		t.breaker = circuitbreaker.NewBuilder[any]().
			WithFailureThresholdRatio(uint(b.Failures), uint(b.Window)).
			WithSuccessThreshold(1).
			WithDelay(b.Delay).
			WithJitterFactor(0.1).
			Build()
	}
	return t, nil
}

// goOn takes over what old, the upstream of u's name before, knows of the same address.
func (t *target) goOn(old, u *Upstream) {
	i := slices.IndexFunc(old.targets, func(o *target) bool { return *o.url == *t.url })
	if i < 0 {
		return
	}
	if old.config.Breaker == u.config.Breaker {
		t.breaker = old.targets[i].breaker
	}
	if u.config.Health.Path != "" {
		t.down.Store(old.targets[i].down.Load())
	}
}

// acquire asks whether a request may be sent, and counts it in flight if so.
func (t *target) acquire() bool {
	if t.breaker != nil && !t.breaker.TryAcquirePermit() {
		return false
	}
	t.inFlight.Add(1)
	return true
}

type result uint8

const (
	succeeded result = iota
	failed
	// unknown: the client left before the target could show what it is worth.
	unknown
)

// report tells the breaker how a request that was acquired went. What nobody knows counts for nothing, except on trial,
// where every permit must be given back: there it keeps the breaker open.
func (t *target) report(r result) {
	if t.breaker == nil {
		return
	}
	switch {
	case r == succeeded:
		t.breaker.RecordSuccess()
	case r == failed || t.breaker.IsHalfOpen():
		t.breaker.RecordFailure()
	}
}

func (t *target) release() { t.inFlight.Add(-1) }
