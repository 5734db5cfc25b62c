package middleware

import (
	"errors"
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"

	"partidor.dev/partidor/shared/bucket"
	"partidor.dev/partidor/shared/fallback"
	"partidor.dev/partidor/shared/headers"
	"partidor.dev/partidor/shared/limit"
)

// Options are what a Middleware is made of. Store, Key and Rule are needed, all else has a default.
type Options struct {
	// Store holds the buckets: bucket.NewRedis, or bucket.NewMemory for a single process.
	Store bucket.Store
	// Key is whom the request is counted against. Without ok the request is not limited: whoever must not pass like that
	// belongs behind authentication.
	Key func(r *http.Request) (key limit.Key, ok bool)
	// Rule is the key's rule; nil means no limit. It must not change once it was returned, and carry a higher revision when
	// its numbers differ from before.
	Rule func(key limit.Key) *limit.Rule
	// Cost of a request in tokens. Default 1.
	Cost func(r *http.Request) int64
	// Share is the part of every limit that this region enforces. Default all of it.
	Share limit.Share

	// Deadline of one decision of Store; afterwards the local limiter decides. Default 5 ms.
	Deadline time.Duration
	// Instances that run this service, for the local limiter. Default 1.
	Instances int
	// Breaker says when Store is no longer asked.
	Breaker fallback.BreakerOptions
	// Refused answers requests that are refused, after the headers were set. Default problem details.
	Refused func(w http.ResponseWriter, r *http.Request, d *limit.Decision)
}

// Middleware limits handlers. It is safe for use by many goroutines.
type Middleware struct {
	opts    Options
	breaker *fallback.Breaker
	local   *fallback.Local
}

// New builds a middleware.
func New(o Options) (*Middleware, error) {
	if o.Store == nil || o.Key == nil || o.Rule == nil {
		return nil, errors.New("middleware: store, key and rule are needed")
	}
	if o.Cost == nil {
		o.Cost = func(*http.Request) int64 { return 1 }
	}
	if o.Share == 0 {
		o.Share = limit.Whole
	}
	if o.Deadline <= 0 {
		o.Deadline = 5 * time.Millisecond
	}
	if o.Breaker.Slow <= 0 {
		o.Breaker.Slow = o.Deadline
	}
	if o.Refused == nil {
		o.Refused = refuse
	}
	return &Middleware{opts: o, breaker: fallback.NewBreaker(o.Breaker), local: fallback.NewLocal(time.Now(), 0)}, nil
}

// Handler limits next. The writer that next gets is the server's own, so streams, upgrades and trailers work as without.
func (m *Middleware) Handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		key, ok := m.opts.Key(r)
		if !ok {
			next.ServeHTTP(w, r)
			return
		}
		d, limited := m.decide(r.Context(), key, m.opts.Cost(r))
		if !limited {
			next.ServeHTTP(w, r)
			return
		}
		headers.Set(w.Header(), &d)
		switch {
		case d.Outcome == limit.Allowed:
			next.ServeHTTP(w, r)
		case r.Context().Err() != nil:
			panic(http.ErrAbortHandler) // The client has left; returning would answer it 200.
		default:
			w.Header().Set("Cache-Control", "no-store")
			if d.Outcome == limit.Refused || d.Outcome == limit.Unable {
				w.Header().Set("Retry-After", strconv.FormatInt(headers.RetryAfter(d.RetryAfter, rand.Float64()), 10))
			}
			m.opts.Refused(w, r, &d)
		}
	})
}

// refuse answers with problem details (RFC 9457), as the gateway does.
func refuse(w http.ResponseWriter, _ *http.Request, d *limit.Decision) {
	status, body := http.StatusTooManyRequests, `{"type":"https://iana.org/assignments/http-problem-types#quota-exceeded","title":"The rate limit is exhausted","status":429}`
	switch d.Outcome {
	case limit.TooLarge:
		status, body = http.StatusRequestEntityTooLarge, `{"type":"https://partidor.dev/problems#cost-above-capacity","title":"The request costs more than the limit can ever hold","status":413}`
	case limit.Blocked:
		status, body = http.StatusForbidden, `{"type":"https://partidor.dev/problems#blocked","title":"Requests are blocked","status":403}`
	case limit.Unable:
		status, body = http.StatusServiceUnavailable, `{"type":"https://iana.org/assignments/http-problem-types#temporary-reduced-capacity","title":"The rate limit cannot be checked at the moment","status":503}`
	}
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(status)
	_, _ = w.Write([]byte(body + "\n")) // The client may be gone.
}
