package route

import (
	"fmt"
	"net/http"
	"strings"

	"partidor.dev/partidor/gateway/internal/config"
	sharedconfig "partidor.dev/partidor/shared/config"
)

// Compile builds the table of a valid configuration. It reports every route that is malformed, could never be reached
// or contradicts another, each naming its field.
func Compile(routes []config.Route) (*Table, error) {
	c := compiler{
		table:  &Table{routes: make([]Route, len(routes)), exact: index{}},
		owners: map[string]int{},
		exact:  http.NewServeMux(),
		folded: http.NewServeMux(),
	}
	for i := range routes {
		c.table.routes[i] = Route{Route: routes[i], Index: i, allow: allowed(routes[i].Allow)}
		c.add(&c.table.routes[i])
	}
	if f := c.table.fallback; f != nil && c.catchAll != "" {
		c.refuse(f, "default", "unreachable: %s answers every request", c.catchAll)
	}
	if err := c.faults.Err(); err != nil {
		return nil, err
	}
	return c.table, nil
}

type compiler struct {
	table *Table
	// owners names the route behind each pattern the muxes hold.
	owners        map[string]int
	exact, folded *http.ServeMux
	catchAll      string
	faults        sharedconfig.Faults
}

func (c *compiler) refuse(r *Route, field, format string, args ...any) {
	c.faults.Add(fmt.Sprintf("routes[%d].%s", r.Index, field), format, args...)
}

func (c *compiler) add(r *Route) {
	if r.Default {
		c.table.fallback = r
		return
	}
	if !strings.HasPrefix(r.Path, "/") {
		c.refuse(r, "path", "%q, must begin with /", r.Path)
		return
	}
	segments, odd, err := parsePattern(r.Path)
	if err != nil {
		c.refuse(r, "path", "%s", err)
		return
	}
	if bad := odd &^ r.allow; bad != 0 {
		c.refuse(r, "path", "unreachable: %s, which allow does not list", strings.TrimPrefix(bad.err().Error(), ErrAmbiguous.Error()+": "))
		return
	}
	if !c.checkRewrite(r, segments) {
		return
	}
	target, mux := c.table.exact, c.exact
	if r.CaseInsensitive {
		if c.table.folded == nil {
			c.table.folded = index{}
		}
		target, mux = c.table.folded, c.folded
		for i := range segments {
			if segments[i].kind == literal {
				segments[i].text = lower(segments[i].text)
			}
		}
	}
	r.segments = segments
	hosts, ok := c.hosts(r)
	if !ok {
		return
	}
	for _, host := range hosts {
		for _, method := range orAny(r.Methods) {
			if c.claim(r, mux, host, method) {
				target.insert(host, method, r)
			}
		}
	}
}

// checkRewrite refuses rewrites that name wildcards the pattern does not have, or that upstreams would see in a form of
// their own making.
func (c *compiler) checkRewrite(r *Route, segments []segment) bool {
	path := r.Rewrite.Path
	for _, s := range segments {
		if s.kind != literal && s.text != "" {
			path = strings.ReplaceAll(path, "{"+s.text+"}", s.text)
		}
	}
	if strings.ContainsAny(path, "{}") {
		c.refuse(r, "rewrite.path", "%q names a wildcard that %q does not have", r.Rewrite.Path, r.Path)
		return false
	}
	for field, p := range map[string]string{"path": path, "add_prefix": r.Rewrite.AddPrefix, "strip_prefix": r.Rewrite.StripPrefix} {
		if p == "" {
			continue
		}
		if normal, odd, err := Normalize(p); err != nil || normal != p || odd != 0 {
			c.refuse(r, "rewrite."+field, "%q, must be a path in normal form, such as %q", p, normal)
			return false
		}
	}
	return true
}

func (c *compiler) hosts(r *Route) (hosts []string, ok bool) {
	ok = true
	for i, h := range r.Hosts {
		n := NormalizeHost(h)
		if n == "" || strings.ContainsAny(n, "/{}* ") || strings.Contains(h, ":") && !strings.Contains(n, ":") {
			c.refuse(r, fmt.Sprintf("hosts[%d]", i), "%q, must be a host name without port or wildcard", h)
			ok = false
			continue
		}
		hosts = append(hosts, n)
	}
	return orAny(hosts), ok
}

// claim registers the pattern with a ServeMux, which knows best when two patterns contradict each other and tells so
// only by panicking.
func (c *compiler) claim(r *Route, mux *http.ServeMux, host, method string) (ok bool) {
	path := muxPattern(r.segments)
	pattern := strings.TrimSpace(method + " " + host + path)
	defer func() {
		if p := recover(); p != nil {
			ok = false
			c.refuse(r, "path", "%s", c.explain(pattern, fmt.Sprint(p)))
		}
	}()
	mux.Handle(pattern, http.NotFoundHandler())
	c.owners[pattern] = r.Index
	if host == "" && method == "" && len(r.segments) == 1 && r.segments[0].kind == rest {
		c.catchAll = fmt.Sprintf("routes[%d]", r.Index)
	}
	return true
}

// explain finds the other pattern in ServeMux's words: pattern "a" conflicts with pattern "b".
func (c *compiler) explain(pattern, words string) string {
	for other, i := range c.owners {
		if strings.Contains(words, fmt.Sprintf("conflicts with pattern %q", other)) {
			if other == pattern {
				return fmt.Sprintf("%q is the pattern of routes[%d] already", pattern, i)
			}
			return fmt.Sprintf("%q contradicts %q of routes[%d]: neither is more specific than the other", pattern, other, i)
		}
	}
	return fmt.Sprintf("%q: %s", pattern, words)
}

func orAny(words []string) []string {
	if len(words) == 0 {
		return []string{""}
	}
	return words
}
