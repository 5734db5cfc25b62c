package proxy

import (
	"net/http"
	"net/url"
	"strings"

	"partidor.dev/partidor/gateway/internal/config"
	"partidor.dev/partidor/gateway/internal/hot/route"
)

// headerEdit is a HeaderEdit with its names in canonical form.
type headerEdit struct {
	remove   []string
	set, add []headerField
}

type headerField struct{ name, value string }

func newHeaderEdit(c config.HeaderEdit) headerEdit {
	var e headerEdit
	for _, name := range c.Remove {
		e.remove = append(e.remove, http.CanonicalHeaderKey(name))
	}
	for name, value := range c.Set {
		e.set = append(e.set, headerField{http.CanonicalHeaderKey(name), value})
	}
	for name, value := range c.Add {
		e.add = append(e.add, headerField{http.CanonicalHeaderKey(name), value})
	}
	return e
}

func (e *headerEdit) apply(h http.Header) {
	for _, name := range e.remove {
		delete(h, name)
	}
	for _, f := range e.set {
		h[f.name] = []string{f.value}
	}
	for _, f := range e.add {
		h[f.name] = append(h[f.name], f.value)
	}
}

// rewritePath is the escaped path that the upstream is to see, before its own prefix: always in normal form, since both
// the client's path and the configured parts are.
func rewritePath(c *config.Rewrite, r *route.Route, path string) string {
	if c.Path != "" {
		if !strings.Contains(c.Path, "{") {
			return c.Path
		}
		out := c.Path
		for name, value := range r.Values(path) {
			out = strings.ReplaceAll(out, "{"+name+"}", value)
		}
		return out
	}
	if p := strings.TrimSuffix(c.StripPrefix, "/"); p != "" {
		if rest, ok := strings.CutPrefix(path, p); ok && (rest == "" || rest[0] == '/') {
			path = rest
		}
	}
	if p := strings.TrimSuffix(c.AddPrefix, "/"); p != "" {
		path = p + path
	}
	if path == "" {
		return "/"
	}
	return path
}

// setPath puts an escaped path into a URL, so that it goes out exactly as it is spelt.
func setPath(u *url.URL, escaped string) {
	if u.RawPath == "" && u.Path == escaped {
		return
	}
	u.Path, u.RawPath = route.Decode(escaped), ""
	if u.Path != escaped {
		u.RawPath = escaped
	}
}
