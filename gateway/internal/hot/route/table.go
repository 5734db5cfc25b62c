package route

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"partidor.dev/partidor/gateway/internal/config"
)

// What a request that has no route is refused with.
var (
	// ErrNotFound: no route matches, and none is the default.
	ErrNotFound = errors.New("no route")
	// ErrAmbiguous: the path is malformed or holds an ambiguous encoding that its route does not allow.
	ErrAmbiguous = errors.New("ambiguous path")
)

// Route is one route of a table.
type Route struct {
	config.Route
	// Index is the route's place in the configuration.
	Index    int
	allow    Oddities
	segments []segment
}

// Match is a request's route and the path to send upstream.
type Match struct {
	Route *Route
	// Path is the escaped path in normal form.
	Path string
}

// Table holds the routes of one configuration. It is immutable and safe for use by many goroutines.
type Table struct {
	routes   []Route
	exact    index
	folded   index // Routes that disregard case, their literals in lower case.
	fallback *Route
}

// Routes in the order of the configuration.
func (t *Table) Routes() []Route { return t.routes }

// Match finds the route of a request. escapedPath is as in URL.EscapedPath, host as in Request.Host. A path in normal
// form costs no allocation. Errors are ErrNotFound and ErrAmbiguous, the latter wrapped with what is ambiguous.
func (t *Table) Match(host, method, escapedPath string) (Match, error) {
	path, odd, err := Normalize(escapedPath)
	if err != nil {
		return Match{}, fmt.Errorf("%w: %w", ErrAmbiguous, err)
	}
	r := t.find(NormalizeHost(host), method, path)
	if r == nil {
		if odd != 0 {
			return Match{}, odd.err()
		}
		return Match{}, ErrNotFound
	}
	if bad := odd &^ r.allow; bad != 0 {
		return Match{}, bad.err()
	}
	return Match{Route: r, Path: path}, nil
}

func (t *Table) find(host, method, path string) *Route {
	if r := t.exact.find(host, method, path[1:]); r != nil {
		return r
	}
	if t.folded != nil {
		if r := t.folded.find(host, method, lower(path)[1:]); r != nil {
			return r
		}
	}
	if !ordinary(method) {
		return nil
	}
	return t.fallback
}

func (o Oddities) err() error {
	var names []string
	for i, name := range config.Encodings {
		if o&(1<<i) != 0 {
			names = append(names, strings.ReplaceAll(name, "_", " "))
		}
	}
	return fmt.Errorf("%w: %s", ErrAmbiguous, strings.Join(names, ", "))
}

// index holds a tree of paths per host and method; the empty host and method stand for any.
type index map[string]map[string]*node

func (x index) find(host, method, path string) *Route {
	if r := findMethod(x[host], method, path); r != nil || host == "" {
		return r
	}
	return findMethod(x[""], method, path)
}

func findMethod(methods map[string]*node, method, path string) *Route {
	if n := methods[method]; n != nil {
		if r := n.find(path); r != nil {
			return r
		}
	}
	if method == http.MethodHead {
		if n := methods[http.MethodGet]; n != nil {
			if r := n.find(path); r != nil {
				return r
			}
		}
	}
	if n := methods[""]; n != nil && ordinary(method) {
		return n.find(path)
	}
	return nil
}

// ordinary methods are those that a route without methods serves. CONNECT would make a tunnel of the connection to the
// upstream, on which nothing is routed or limited any more; TRACE sends back what the gateway has added to the request. The
// latter may be listed.
func ordinary(method string) bool { return method != http.MethodConnect && method != http.MethodTrace }

func (x index) insert(host, method string, r *Route) {
	if x[host] == nil {
		x[host] = map[string]*node{}
	}
	if x[host][method] == nil {
		x[host][method] = &node{}
	}
	x[host][method].insert(r.segments, r)
}

func allowed(words []string) (o Oddities) {
	for i, name := range config.Encodings {
		if slices.Contains(words, name) {
			o |= 1 << i
		}
	}
	return o
}
