package api

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"partidor.dev/partidor/rebalancer/internal/board"
	"partidor.dev/partidor/rebalancer/internal/cycle"
)

// Board shows everything at one moment.
type Board interface {
	Picture(ctx context.Context) (*board.Picture, error)
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
	Board      Board
	Rebalancer Rebalancer
	Leadership Leadership
	Readiness  Readiness
	Metrics    http.Handler
	Access     Access
	Instance   string
	Version    string
	Started    time.Time
	Logger     *slog.Logger
}

// Handler of everything.
func (s *Server) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("ok\n")) })
	mux.Handle("GET /readyz", http.HandlerFunc(s.ready))
	mux.Handle("GET /metrics", s.Metrics)
	for _, e := range s.endpoints() {
		mux.Handle(e.Method+" "+e.Path, s.allow(e.Role, s.serve(e.handle)))
	}
	mux.Handle("/v1/", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		writeProblem(w, notFound(r.Method+" "+r.URL.Path))
	}))
	return harden(mux)
}

// endpoint is one operation of the API. The OpenAPI document is checked against the list of them.
type endpoint struct {
	Method, Path string
	Role         Role
	handle       handler
}

func (s *Server) endpoints() []endpoint {
	return []endpoint{
		{"GET", "/v1/status", Viewer, s.status},
		{"GET", "/v1/regions", Viewer, s.regions},
		{"GET", "/v1/splits", Viewer, s.splits},
	}
}

// maxBody bounds a request: a declarative set of some ten thousand rules fits.
const maxBody = 32 << 20

// harden bounds requests and keeps answers out of caches and foreign frames.
func harden(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Body = http.MaxBytesReader(w, r.Body, maxBody)
		h := w.Header()
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cache-Control", "no-store")
		h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
		next.ServeHTTP(w, r)
	})
}
