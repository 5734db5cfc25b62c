package api

import (
	"context"
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"

	"partidor.dev/partidor/rebalancer/internal/board"
	"partidor.dev/partidor/rebalancer/internal/cycle"
	"partidor.dev/partidor/rebalancer/internal/ledger"
	"partidor.dev/partidor/rebalancer/internal/parameter"
	"partidor.dev/partidor/rebalancer/internal/plan"
	"partidor.dev/partidor/shared/limit"
)

// Board shows everything at one moment.
type Board interface {
	Picture(ctx context.Context) (*board.Picture, error)
	// Keys are the named ones as they are now, in the given order.
	Keys(names []limit.Key) []board.Key
	// Key is one key with its details, and the picture it is in; one that nobody has used lately as it would begin.
	Key(ctx context.Context, name limit.Key) (board.Key, *board.Picture, error)
	// Knowledge is what a plan rests on: the ledger, the demand, and which regions are known, in the order of regions. The
	// caller may keep and change what it gets.
	Knowledge(ctx context.Context) (*ledger.Mirror, []plan.Demand, []bool, error)
	Outdate()
}

// Rebalancer is the slow loop of this process.
type Rebalancer interface {
	Last() cycle.Outcome
}

// Leadership tells who leads.
type Leadership interface {
	// Term this process leads in, 0 if it does not.
	Term() int64
	// Leader is the name of the leader as last seen, "" if there is none.
	Leader() string
}

// Readiness lists what keeps this process from working; empty means ready.
type Readiness func() []string

// Server is the admin port. All fields are needed.
type Server struct {
	Ledger     Ledger
	Board      Board
	Rebalancer Rebalancer
	Leadership Leadership
	Readiness  Readiness
	Metrics    http.Handler
	Access     Access
	// Base are the parameters where the ledger sets none.
	Base     parameter.Values
	Instance string
	Version  string
	Started  time.Time
	Logger   *slog.Logger
	// Console is the page for people, at /console/. Done ends its streams; a closed one ends them at once.
	Console http.Handler
	Done    <-chan struct{}

	streams atomic.Int64
}

// Handler of everything.
func (s *Server) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("ok\n")) })
	mux.Handle("GET /readyz", http.HandlerFunc(s.ready))
	mux.Handle("GET /metrics", s.Metrics)
	for _, e := range s.endpoints() {
		most := int64(maxBody)
		if _, ok := e.body.(RuleSet); ok {
			most = maxRules
		}
		mux.Handle(e.method+" "+e.path, s.allow(e.role, bounded(most, s.serve(e.checked()))))
	}
	mux.Handle("GET /v1/events", s.allow(Viewer, http.HandlerFunc(s.events)))
	mux.Handle("POST /v1/session", bounded(maxBody, http.HandlerFunc(s.signIn)))
	mux.Handle("DELETE /v1/session", http.HandlerFunc(s.signOut))
	mux.Handle("GET /console/", s.Console)
	mux.Handle("GET /{$}", http.RedirectHandler("/console/", http.StatusSeeOther))
	mux.Handle("/v1/", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		writeProblem(w, notFound(r.Method+" "+r.URL.Path))
	}))
	// Browsers send the console's cookie, or nothing where anonymous callers may change things, from foreign pages too.
	sameOrigin := http.NewCrossOriginProtection()
	sameOrigin.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		writeProblem(w, problem(http.StatusForbidden, "cross-origin", "Not from a foreign page", ""))
	}))
	return harden(sameOrigin.Handler(mux))
}

const (
	// maxBody bounds a request, maxRules one that declares rules: half a million of them fit.
	maxBody  = 1 << 20
	maxRules = 128 << 20
)

// bounded lets at most so many bytes of a request's body through.
func bounded(most int64, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Body = http.MaxBytesReader(w, r.Body, most)
		next.ServeHTTP(w, r)
	})
}

// harden keeps answers out of caches and foreign frames.
func harden(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cache-Control", "no-store")
		h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
		next.ServeHTTP(w, r)
	})
}
