package proxy

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync/atomic"
	"time"

	"partidor.dev/partidor/gateway/internal/config"
)

// retry says when a request is sent again. failsafe-go's policy is not used here because it gives up the last answer
// when its budget is spent, and an upstream's own 503 tells the client more than ours.
type retry struct {
	attempts int
	statuses []int
	delay    time.Duration
	budget   *retryBudget
}

// newRetry is nil where nothing is repeated. The budget of old, what the route had before, is gone on with, as far as it was spent.
func newRetry(c config.Retry, old *retry) *retry {
	if c.Attempts <= 1 {
		return nil
	}
	p := &retry{attempts: c.Attempts, statuses: c.On, delay: c.Delay}
	part := int64(c.Budget * budgetUnit)
	switch {
	case old != nil && old.budget.part == part:
		p.budget = old.budget
	case old != nil:
		p.budget = &retryBudget{part: part}
		p.budget.saved.Store(old.budget.saved.Load())
	default:
		p.budget = &retryBudget{part: part}
		p.budget.saved.Store(budgetMost)
	}
	return p
}

// worth tells whether sending the request again is safe and may help. It is safe where no byte was sent, and where it does
// not matter how often the request is worked on.
func (p *retry) worth(req *http.Request, x *exchange, resp *http.Response, err error) bool {
	switch {
	case x.gone() || errors.Is(err, errNoTarget) || errors.Is(err, context.DeadlineExceeded):
		return false
	case err == nil:
		return slices.Contains(p.statuses, resp.StatusCode) && idempotent(req)
	}
	return errors.Is(err, errConnect) && !x.bodyRead() || idempotent(req)
}

// idempotent requests may be worked on twice (RFC 9110 §9.2.2), and can be sent twice because they have no body.
func idempotent(req *http.Request) bool {
	if req.Body != nil && req.Body != http.NoBody {
		return false
	}
	switch req.Method {
	case http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace, http.MethodPut, http.MethodDelete:
		return true
	}
	return len(req.Header["Idempotency-Key"]) > 0
}

// wait pauses before attempt n+1: the delay, doubled each time, at most 20-fold, give or take a quarter.
func (p *retry) wait(ctx context.Context, n int) error {
	d := min(p.delay<<(n-1), 20*p.delay)
	d = time.Duration(float64(d) * (0.75 + rand.Float64()/2))
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// retryBudget lets repeats be at most a part of a route's requests: each request earns that part of a repeat, each repeat
// spends a whole one. So many repeats may be saved up that a quiet route has some.
type retryBudget struct {
	part  int64
	saved atomic.Int64
}

const (
	budgetUnit = 1000
	budgetMost = 10 * budgetUnit
)

func (b *retryBudget) earn() {
	if b.saved.Load() < budgetMost {
		b.saved.Add(b.part)
	}
}

func (b *retryBudget) spend() bool {
	for {
		saved := b.saved.Load()
		if saved < budgetUnit {
			return false
		}
		if b.saved.CompareAndSwap(saved, saved-budgetUnit) {
			return true
		}
	}
}
