package respond

import (
	"net/http"
	"slices"
	"strconv"
	"strings"

	"partidor.dev/partidor/gateway/internal/config"
)

// exposed are the headers that scripts of other origins may read.
const exposed = "Retry-After, RateLimit, RateLimit-Policy, X-RateLimit-Limit, X-RateLimit-Remaining, X-RateLimit-Reset"

// cors answers browsers in the upstreams' place; nil leaves CORS to the upstreams.
type cors struct {
	origins     []string
	any         bool
	methods     string
	headers     string
	credentials bool
	maxAge      string
}

func newCORS(c config.CORS) *cors {
	if len(c.Origins) == 0 {
		return nil
	}
	return &cors{
		origins:     c.Origins,
		any:         slices.Contains(c.Origins, "*"),
		methods:     strings.Join(c.Methods, ", "),
		headers:     strings.Join(c.Headers, ", "),
		credentials: c.Credentials,
		maxAge:      strconv.Itoa(int(c.MaxAge.Seconds())),
	}
}

// expose lets scripts of the request's origin read the response and the limit's headers. Where CORS is left to the
// upstreams, headers are exposed only if the upstream let the origin read the response.
func (c *cors) expose(h http.Header, r *http.Request) {
	if c == nil {
		if len(h["Access-Control-Allow-Origin"]) > 0 {
			h["Access-Control-Expose-Headers"] = append(slices.Clip(h["Access-Control-Expose-Headers"]), exposed)
		}
		return
	}
	if c.allow(h, r) {
		h["Access-Control-Expose-Headers"] = append(slices.Clip(h["Access-Control-Expose-Headers"]), exposed)
	}
}

// allow names the request's origin as allowed, if it is. An upstream's own word is replaced.
func (c *cors) allow(h http.Header, r *http.Request) bool {
	delete(h, "Access-Control-Allow-Origin")
	delete(h, "Access-Control-Allow-Credentials")
	if !c.any && !slices.ContainsFunc(h["Vary"], func(v string) bool { return strings.EqualFold(v, "Origin") }) {
		h["Vary"] = append(slices.Clip(h["Vary"]), "Origin")
	}
	origin := r.Header["Origin"]
	switch {
	case len(origin) != 1:
		return false
	case c.any:
		h["Access-Control-Allow-Origin"] = []string{"*"}
	case slices.Contains(c.origins, origin[0]):
		h["Access-Control-Allow-Origin"] = origin
	default:
		return false
	}
	if c.credentials {
		h["Access-Control-Allow-Credentials"] = []string{"true"}
	}
	return true
}

// PreflightMethod is the method a browser asks leave for; empty if the request is no preflight, or if preflights are
// the upstreams' business.
func (s *Responder) PreflightMethod(r *http.Request) string {
	if s.cors == nil || r.Method != http.MethodOptions || len(r.Header["Origin"]) != 1 {
		return ""
	}
	if m := r.Header["Access-Control-Request-Method"]; len(m) == 1 {
		return m[0]
	}
	return ""
}

// Preflight answers a browser that asks leave, without headers where its origin has none.
func (s *Responder) Preflight(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	if s.cors.allow(h, r) {
		h["Access-Control-Allow-Methods"] = []string{orAsked(s.cors.methods, r, "Access-Control-Request-Method")}
		if headers := orAsked(s.cors.headers, r, "Access-Control-Request-Headers"); headers != "" {
			h["Access-Control-Allow-Headers"] = []string{headers}
		}
		h["Access-Control-Max-Age"] = []string{s.cors.maxAge}
	}
	h["Vary"] = append(h["Vary"], "Access-Control-Request-Method", "Access-Control-Request-Headers")
	w.WriteHeader(http.StatusNoContent)
}

func orAsked(configured string, r *http.Request, header string) string {
	if configured != "" {
		return configured
	}
	return strings.Join(r.Header[header], ", ")
}
