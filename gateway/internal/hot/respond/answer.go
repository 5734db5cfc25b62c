package respond

import (
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"time"

	"partidor.dev/partidor/gateway/internal/config"
	"partidor.dev/partidor/shared/headers"
	"partidor.dev/partidor/shared/limit"
)

// Responder answers in the gateway's own name. It is immutable and safe for use by many goroutines.
type Responder struct {
	cors      *cors
	challenge []string
	// spread gives the jitter of Retry-After, from 0 to 1.
	spread func() float64
}

// New builds the responder of a valid configuration.
func New(c *config.Config) *Responder {
	scheme := "ApiKey"
	if len(c.Identity.Schemes) > 0 {
		scheme = c.Identity.Schemes[0]
	}
	return &Responder{
		cors:      newCORS(c.CORS),
		challenge: []string{scheme + ` realm="partidor"`},
		spread:    rand.Float64,
	}
}

// Answer is what the gateway says instead of an upstream.
type Answer struct {
	Problem *Problem
	// Route of the request; nil where none is known yet.
	Route *config.Route
	// Decision that the answer follows from, or that an upstream failed after; nil where no limit was asked.
	Decision *limit.Decision
	// Wait is the time until the request may be sent again; 0 with a 429 or 503 means soon.
	Wait time.Duration
}

// Refusal is the problem that answers a decision which did not allow its request.
func Refusal(d *limit.Decision) *Problem {
	switch d.Outcome {
	case limit.TooLarge:
		return CostTooLarge
	case limit.Blocked:
		return Blocked
	case limit.Unable:
		return ReducedCapacity
	default:
		return QuotaExceeded
	}
}

// Write sends the answer. gRPC callers get a trailers-only response, everybody else problem details or the route's own
// body; none of them is to be cached.
func (s *Responder) Write(w http.ResponseWriter, r *http.Request, a Answer) {
	h := w.Header()
	h["Cache-Control"] = noStore
	policy, retry := "", int64(0)
	if d := a.Decision; d != nil {
		headers.Set(h, d)
		if d.Outcome != limit.Allowed && d.Rule != nil {
			policy = d.Key.Route
		}
	}
	if a.Problem.Status == http.StatusTooManyRequests || a.Problem.Status == http.StatusServiceUnavailable {
		retry = headers.RetryAfter(a.Wait, s.spread())
		h["Retry-After"] = []string{strconv.FormatInt(retry, 10)}
	}
	if a.Problem.Challenge {
		h["Www-Authenticate"] = s.challenge
	}
	s.cors.expose(h, r)
	if IsGRPC(r) {
		writeTrailersOnly(w, r, a, retry)
		return
	}
	contentType, body := problemType, []byte(nil)
	if custom, ok := a.custom(); ok {
		contentType = custom.ContentType
		body = []byte(fill(custom.Text, a.Problem.Status, policy, retry))
	} else {
		body = a.Problem.appendJSON(make([]byte, 0, 256), policyNames(policy)...)
	}
	h["Content-Type"] = []string{contentType}
	h["Content-Length"] = []string{strconv.Itoa(len(body))}
	w.WriteHeader(a.Problem.Status)
	// The client may be gone; nobody is left to tell.
	_, _ = w.Write(body)
}

const problemType = "application/problem+json"

var noStore = []string{"no-store"}

func policyNames(policy string) []string {
	if policy == "" {
		return nil
	}
	return []string{policy}
}

func (a *Answer) custom() (config.Body, bool) {
	if a.Route == nil {
		return config.Body{}, false
	}
	b, ok := a.Route.Bodies[a.Problem.Status]
	return b, ok
}

// fill puts the numbers of one answer into a route's own body.
func fill(text string, status int, policy string, retry int64) string {
	return strings.NewReplacer(
		"{status}", strconv.Itoa(status),
		"{policy}", policy,
		"{retry_after}", strconv.FormatInt(retry, 10),
	).Replace(text)
}

// Decorate completes a response of an upstream, whose headers are h, to the request r.
func (s *Responder) Decorate(h http.Header, r *http.Request, d *limit.Decision) {
	if d != nil {
		headers.Set(h, d)
	}
	s.cors.expose(h, r)
}
