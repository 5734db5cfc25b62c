package hot

import (
	"fmt"
	"log"
	"log/slog"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"time"

	"partidor.dev/partidor/gateway/internal/config"
	"partidor.dev/partidor/gateway/internal/hot/identify"
	"partidor.dev/partidor/gateway/internal/hot/proxy"
	"partidor.dev/partidor/gateway/internal/hot/respond"
	"partidor.dev/partidor/gateway/internal/hot/route"
)

// generation is everything that one configuration means to the request path. It is immutable.
type generation struct {
	config          *config.Config
	table           *route.Table
	routes          []servedRoute
	upstreams       map[string]*proxy.Upstream
	identifier      *identify.Identifier
	addresses       *identify.Addresses
	guard           *identify.Guard
	guardFailures   bool
	responder       *respond.Responder
	keepUnderscores map[string]bool
	silence         time.Duration // that is borne amid a body; of the configuration that the server was started with
}

// servedRoute is a route with what it takes to serve it.
type servedRoute struct {
	*route.Route
	cost     int64
	upgrades []string // Protocols that clients may switch to, and that the upstream's own protocol can carry.
	proxy    *proxy.Route
	shedder  *shedder
	metrics  routeMetrics
}

// Check tells what a configuration that is valid field by field still gets wrong as a whole: routes that contradict each
// other or can never be reached. It opens nothing.
func Check(c *config.Config) error {
	_, err := route.Compile(c.Routes)
	return err
}

// newGeneration builds the meaning of c. What old already has and c leaves as it was is taken over.
func newGeneration(c *config.Config, old *generation, o Options) (*generation, error) {
	table, err := route.Compile(c.Routes)
	if err != nil {
		return nil, err
	}
	g := &generation{
		config:          c,
		table:           table,
		upstreams:       map[string]*proxy.Upstream{},
		identifier:      identify.New(c.Identity),
		addresses:       identify.NewAddresses(c.Addresses),
		guardFailures:   c.Addresses.Guard.FailuresOnly,
		responder:       respond.New(c),
		keepUnderscores: canonicalNames(c.Server.UnderscoreHeaders),
		silence:         c.Server.BodyTimeout,
	}
	if old != nil {
		g.silence = old.silence
	}
	if old != nil && old.config.Addresses.Guard == c.Addresses.Guard {
		g.guard = old.guard
	} else {
		g.guard = identify.NewGuard(c.Addresses.Guard, o.Now())
	}
	for _, name := range slices.Sorted(maps.Keys(c.Upstreams)) {
		if old != nil && reflect.DeepEqual(old.config.Upstreams[name], c.Upstreams[name]) {
			g.upstreams[name] = old.upstreams[name]
			continue
		}
		if g.upstreams[name], err = proxy.NewUpstream(name, c.Upstreams[name], o.Logger, old.upstream(name)); err != nil {
			delete(g.upstreams, name)
			g.closeExcept(old)
			return nil, err
		}
	}
	if err := g.serve(old, o.Logger); err != nil {
		g.closeExcept(old)
		return nil, err
	}
	return g, nil
}

func (g *generation) serve(old *generation, logger *slog.Logger) error {
	settings := proxy.Settings{
		TenantHeader: g.config.Identity.TenantHeader,
		Pass:         canonicalNames(g.config.Server.PassHeaders),
		Log:          log.New(quiet{logger}, "", 0),
	}
	if !g.config.Identity.Forward {
		settings.Strip = g.identifier.Strip
	}
	routes := g.table.Routes()
	g.routes = make([]servedRoute, len(routes))
	for i := range routes {
		r := &routes[i]
		p, err := proxy.NewRoute(r, g.upstreams[r.Upstream], settings, old.proxyOf(r))
		if err != nil {
			return fmt.Errorf("routes[%d]: %w", i, err)
		}
		upgrades := r.Upgrades
		if g.config.Upstreams[r.Upstream].Protocol != config.ProtocolHTTP1 {
			upgrades = nil // HTTP/2 has no such switch: a transport would fail, as if the upstream had.
		}
		g.routes[i] = servedRoute{
			Route:    r,
			cost:     r.CostOrDefault(),
			upgrades: upgrades,
			proxy:    p,
			shedder:  old.shedderOf(r),
			metrics:  newRouteMetrics(r),
		}
	}
	return nil
}

func canonicalNames(names []string) map[string]bool {
	m := map[string]bool{}
	for _, name := range names {
		m[http.CanonicalHeaderKey(name)] = true
	}
	return m
}

// upstream is the one of that name, nil where there is none.
func (g *generation) upstream(name string) *proxy.Upstream {
	if g == nil {
		return nil
	}
	return g.upstreams[name]
}

// proxyOf is what a route was forwarded by, nil where there was none or it went to another upstream.
func (g *generation) proxyOf(r *route.Route) *proxy.Route {
	if g != nil {
		for i := range g.routes {
			if was := &g.routes[i]; was.ID == r.ID && was.Upstream == r.Upstream {
				return was.proxy
			}
		}
	}
	return nil
}

// shedderOf goes on counting where the bounds of a route stay the same.
func (g *generation) shedderOf(r *route.Route) *shedder {
	if g != nil {
		for i := range g.routes {
			if was := &g.routes[i]; was.ID == r.ID && was.MaxConcurrent == r.MaxConcurrent && was.MaxConcurrentPerTenant == r.MaxConcurrentPerTenant {
				return was.shedder
			}
		}
	}
	return newShedder(r.MaxConcurrent, r.MaxConcurrentPerTenant)
}

// closeExcept closes the upstreams that other, if any, does not go on using.
func (g *generation) closeExcept(other *generation) {
	for name, u := range g.upstreams {
		if other == nil || other.upstreams[name] != u {
			u.Close()
		}
	}
}

// secure tells whether the client speaks TLS: to us, or by the word of a trusted proxy.
func (g *generation) secure(r *http.Request) bool {
	if r.TLS != nil {
		return true
	}
	if proto := r.Header["X-Forwarded-Proto"]; len(proto) == 1 && g.addresses.ByTrusted(r) {
		return strings.EqualFold(proto[0], "https")
	}
	return false
}

// quiet passes on what net/http's parts want to log, as debug: the journal tells what matters.
type quiet struct{ logger *slog.Logger }

func (q quiet) Write(p []byte) (int, error) {
	q.logger.Debug(strings.TrimSpace(string(p)))
	return len(p), nil
}
