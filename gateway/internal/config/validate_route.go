package config

import (
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"golang.org/x/net/http/httpguts"

	"partidor.dev/partidor/shared/limit"
)

// Encodings are the words of Route.Allow.
var Encodings = []string{"encoded_slash", "encoded_backslash", "encoded_dots", "control_bytes", "path_parameters", "not_utf8"}

func (c *Config) validateUpstreams(f *faults) {
	for _, name := range slices.Sorted(maps.Keys(c.Upstreams)) {
		u := c.Upstreams[name]
		u.validate(f, "upstreams."+name)
	}
}

func (u *Upstream) validate(f *faults, field string) {
	if len(u.Targets) == 0 {
		f.Add(field+".targets", "at least one target is needed")
	}
	for i, t := range u.Targets {
		at := index(field+".targets", i)
		target, err := url.Parse(t.URL)
		switch {
		case err != nil || target.Host == "" || target.Scheme != "http" && target.Scheme != "https":
			f.Add(at+".url", "%q, must be http://host:port or https://host:port", t.URL)
		case target.User != nil:
			f.Add(at+".url", "must not hold a password")
		case target.RawQuery != "" || target.Fragment != "":
			f.Add(at+".url", "%q, must have no query", t.URL)
		case u.Protocol == ProtocolH2 && target.Scheme != "https":
			f.Add(at+".url", "protocol h2 needs https; for HTTP/2 without TLS say h2c")
		case u.Protocol == ProtocolH2C && target.Scheme != "http":
			f.Add(at+".url", "protocol h2c needs http")
		}
		between(f, at+".weight", t.Weight, 1, 1000)
	}
	oneOf(f, field+".balance", u.Balance, BalanceRoundRobin, BalanceLeastLoaded)
	oneOf(f, field+".protocol", u.Protocol, ProtocolHTTP1, ProtocolH2, ProtocolH2C)
	positive(f, field+".connect_timeout", u.ConnectTimeout)
	atLeast(f, field+".idle_connections", u.IdleConnections, 0)
	positive(f, field+".idle_timeout", u.IdleTimeout)
	atLeast(f, field+".max_connections", u.MaxConnections, 0)
	if h := u.Health; h.Path != "" && !strings.HasPrefix(h.Path, "/") {
		f.Add(field+".health.path", "%q, must begin with /", h.Path)
	}
	positive(f, field+".health.interval", u.Health.Interval)
	positive(f, field+".health.timeout", u.Health.Timeout)
	atLeast(f, field+".health.unhealthy", u.Health.Unhealthy, 1)
	atLeast(f, field+".health.healthy", u.Health.Healthy, 1)
	atLeast(f, field+".breaker.failures", u.Breaker.Failures, 1)
	between(f, field+".breaker.window", u.Breaker.Window, u.Breaker.Failures, 10_000)
	positive(f, field+".breaker.delay", u.Breaker.Delay)
}

func (c *Config) validateRoutes(f *faults) {
	if len(c.Routes) == 0 {
		f.Add("routes", "at least one route is needed")
	}
	seen := map[string]int{}
	fallbacks := 0
	for i := range c.Routes {
		r, field := &c.Routes[i], index("routes", i)
		if first, ok := seen[r.ID]; ok && r.ID != "" {
			f.Add(field+".id", "%q is the id of %s already", r.ID, index("routes", first))
		} else {
			seen[r.ID] = i
		}
		if r.Default {
			fallbacks++
		}
		r.validate(f, field)
		if _, ok := c.Upstreams[r.Upstream]; !ok {
			f.Add(field+".upstream", "%q is not among upstreams", r.Upstream)
		}
	}
	if fallbacks > 1 {
		f.Add("routes", "%d routes are default, at most one may be", fallbacks)
	}
}

func (r *Route) validate(f *faults, field string) {
	if err := limit.ValidateName("id", r.ID); err != nil {
		f.Add(field+".id", "%s", strings.TrimPrefix(err.Error(), "id: "))
	} else if i := strings.IndexFunc(r.ID, func(c rune) bool { return c < 0x20 || c > 0x7e }); i >= 0 {
		f.Add(field+".id", "%q, must be printable ASCII: it is sent in headers", r.ID)
	}
	switch {
	case r.Default && r.Path != "":
		f.Add(field+".path", "a default route has no path")
	case r.Default && (len(r.Hosts) > 0 || len(r.Methods) > 0):
		f.Add(field+".default", "a default route answers for every host and method")
	case !r.Default && !strings.HasPrefix(r.Path, "/"):
		f.Add(field+".path", "%q, must begin with /", r.Path)
	}
	for i, m := range r.Methods {
		if !httpguts.ValidHeaderFieldName(m) || m != strings.ToUpper(m) || m == http.MethodConnect {
			f.Add(index(field+".methods", i), "%q, must be a method in capitals other than CONNECT", m)
		}
	}
	for i, a := range r.Allow {
		oneOf(f, index(field+".allow", i), a, Encodings...)
	}
	if duplicates(r.Methods) || duplicates(r.Hosts) || duplicates(r.Allow) {
		f.Add(field, "methods, hosts and allow must not repeat a word")
	}
	between(f, field+".cost", r.CostOrDefault(), 0, limit.MaxTokens)
	if r.Unlimited && r.Cost != nil && *r.Cost > 0 {
		f.Add(field+".cost", "an unlimited route costs nothing")
	}
	positive(f, field+".timeouts.response", r.Timeouts.Response)
	notNegative(f, field+".timeouts.total", r.Timeouts.Total)
	atLeast(f, field+".max_body_bytes", r.MaxBodyBytes, 0)
	atLeast(f, field+".max_concurrent", r.MaxConcurrent, 0)
	atLeast(f, field+".max_concurrent_per_tenant", r.MaxConcurrentPerTenant, 0)
	for i, u := range r.Upgrades {
		headerName(f, index(field+".upgrades", i), u)
		if strings.EqualFold(u, "h2c") {
			f.Add(index(field+".upgrades", i), "h2c would let clients past every limit; for HTTP/2 say server.h2c")
		}
	}
	r.validateRewrite(f, field+".rewrite")
	r.RequestHeaders.validate(f, field+".request_headers")
	r.ResponseHeaders.validate(f, field+".response_headers")
	between(f, field+".retry.attempts", r.Retry.Attempts, 1, 10)
	between(f, field+".retry.budget", r.Retry.Budget, 0, 1)
	for i, s := range r.Retry.On {
		between(f, index(field+".retry.on", i), s, 500, 599)
	}
	between(f, field+".grpc.limited_status", r.GRPC.LimitedStatus, 1, 16)
	for status, b := range r.Bodies {
		at := fmt.Sprintf("%s.bodies.%d", field, status)
		between(f, at, status, 400, 599)
		if b.ContentType == "" || !httpguts.ValidHeaderFieldValue(b.ContentType) {
			f.Add(at+".content_type", "%q is no content type", b.ContentType)
		}
	}
}

func (r *Route) validateRewrite(f *faults, field string) {
	w := r.Rewrite
	if w.Path != "" && (w.StripPrefix != "" || w.AddPrefix != "") {
		f.Add(field, "give path, or strip_prefix and add_prefix, not both")
	}
	for name, v := range map[string]string{"path": w.Path, "strip_prefix": w.StripPrefix, "add_prefix": w.AddPrefix} {
		if v != "" && !strings.HasPrefix(v, "/") {
			f.Add(field+"."+name, "%q, must begin with /", v)
		}
	}
	if w.Host != "" && !httpguts.ValidHostHeader(w.Host) {
		f.Add(field+".host", "%q is no host", w.Host)
	}
}

// framing headers say where a message ends and what one connection does with it. An edit would contradict what is sent.
var framing = []string{"Connection", "Content-Length", "Keep-Alive", "Proxy-Connection", "Te", "Trailer", "Transfer-Encoding", "Upgrade"}

func (h *HeaderEdit) validate(f *faults, field string) {
	for i, name := range h.Remove {
		headerName(f, index(field+".remove", i), name)
	}
	for part, edits := range map[string]map[string]string{"set": h.Set, "add": h.Add} {
		for name, value := range edits {
			headerName(f, field+"."+part+"."+name, name)
			switch canonical := http.CanonicalHeaderKey(name); {
			case canonical == "Host":
				f.Add(field+"."+part+"."+name, "the host is no ordinary header: say rewrite.host")
			case slices.Contains(framing, canonical):
				f.Add(field+"."+part+"."+name, "belongs to one connection or to the framing of one message: the gateway writes it itself")
			}
			if !httpguts.ValidHeaderFieldValue(value) {
				f.Add(field+"."+part+"."+name, "%q is no header value", value)
			}
		}
	}
}
