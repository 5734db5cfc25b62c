package proxy

import (
	"context"
	"errors"
	"net/http"

	"partidor.dev/partidor/gateway/internal/config"
)

// errNoTarget: every breaker of the upstream is open.
var errNoTarget = errors.New("no target")

// attempts is the transport under a route's ReverseProxy.
type attempts struct {
	upstream  *Upstream
	transport *http.Transport
	retry     *retry // nil where nothing is repeated
}

func newAttempts(u *Upstream, r config.Route, old *attempts) (*attempts, error) {
	t, err := u.transport(r.Timeouts.Response)
	if err != nil {
		return nil, err
	}
	var before *retry
	if old != nil {
		before = old.retry
	}
	return &attempts{upstream: u, transport: t, retry: newRetry(r.Retry, before)}, nil
}

// RoundTrip sends the request to a target, and again to another where that is safe.
func (a *attempts) RoundTrip(req *http.Request) (*http.Response, error) {
	x := exchangeOf(req.Context())
	if a.retry == nil || x.upgrade {
		return a.once(req, x, nil)
	}
	a.retry.budget.earn()
	for n := 1; ; n++ {
		out, last := req, x.target
		if n > 1 {
			// The transport may still hold on to what it was given before.
			out = req.Clone(req.Context())
		}
		resp, err := a.once(out, x, last)
		if n == a.retry.attempts || !a.retry.worth(req, x, resp, err) || !a.retry.budget.spend() {
			return resp, err
		}
		if resp != nil {
			resp.Body.Close()
		}
		if err := a.retry.wait(req.Context(), n); err != nil {
			return nil, err
		}
	}
}

// once sends the request to one target, not to skip if there is another.
func (a *attempts) once(req *http.Request, x *exchange, skip *target) (*http.Response, error) {
	t := a.upstream.picker.pick(skip)
	if t == nil {
		return nil, errNoTarget
	}
	x.hold(t)
	aim(req, t, x.path)
	x.request.Observer.Attempt(req, t.url.Host)
	resp, err := a.transport.RoundTrip(req)
	switch {
	case err != nil && (x.gone() || errors.Is(err, context.Canceled)):
		t.report(unknown)
	case err != nil || resp.StatusCode >= 502 && resp.StatusCode <= 504:
		t.report(failed)
	default:
		t.report(succeeded)
	}
	status := 0
	if resp != nil {
		status = resp.StatusCode
	}
	x.request.Observer.Answered(status, err)
	return resp, err
}

// aim points the request at a target.
func aim(req *http.Request, t *target, path string) {
	req.URL.Scheme, req.URL.Host = t.url.Scheme, t.url.Host
	setPath(req.URL, t.prefix+path)
}

// timedOut tells whether an upstream was too slow rather than broken.
func timedOut(err error) bool {
	var t interface{ Timeout() bool }
	return errors.Is(err, context.DeadlineExceeded) || errors.As(err, &t) && t.Timeout()
}
