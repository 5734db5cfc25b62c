package admin

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/pprof"
	"strings"
	"time"
)

// Options are what the port shows.
type Options struct {
	// Version is the body of /version.
	Version any
	// Checks decide /readyz.
	Checks []Check
	// Metrics serves /metrics.
	Metrics http.Handler
	// Pages are served besides, by ServeMux pattern.
	Pages map[string]http.Handler
	// Token guards a port that is not on loopback; empty shows only health there.
	Token  string
	Logger *slog.Logger
}

// Handler serves the port as reached through a listener at addr.
func Handler(addr net.Addr, o Options) http.Handler {
	guarded := http.NewServeMux()
	guarded.Handle("GET /metrics", o.Metrics)
	guarded.HandleFunc("GET /version", func(w http.ResponseWriter, _ *http.Request) { writeJSON(w, http.StatusOK, o.Version) })
	for pattern, h := range o.Pages {
		guarded.Handle(pattern, h)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", healthz)
	mux.HandleFunc("GET /readyz", readyz(o.Checks))
	if isLoopback(addr) {
		guarded.HandleFunc("/debug/pprof/", pprof.Index)
		guarded.HandleFunc("/debug/pprof/cmdline", pprof.Cmdline)
		guarded.HandleFunc("/debug/pprof/profile", pprof.Profile)
		guarded.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
		guarded.HandleFunc("/debug/pprof/trace", pprof.Trace)
		mux.Handle("/", localOnly(guarded))
	} else {
		mux.Handle("/", bearer(o.Token, guarded))
	}
	return mux
}

func isLoopback(addr net.Addr) bool {
	tcp, ok := addr.(*net.TCPAddr)
	return !ok || tcp.IP.IsLoopback() // a Unix socket is guarded by its file's mode
}

// localOnly refuses names that are not this host's: a browser here can be made to send requests to loopback under a
// foreign name that resolves to it, and read the answers.
func localOnly(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host := r.Host
		if h, _, err := net.SplitHostPort(host); err == nil {
			host = h
		}
		ip := net.ParseIP(strings.Trim(host, "[]"))
		if host != "localhost" && host != "" && (ip == nil || !ip.IsLoopback()) {
			http.Error(w, "this port answers to loopback names only", http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// bearer lets requests with the token through.
func bearer(token string, next http.Handler) http.Handler {
	want := sha256.Sum256([]byte(token))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		scheme, given, _ := strings.Cut(r.Header.Get("Authorization"), " ")
		got := sha256.Sum256([]byte(strings.TrimSpace(given)))
		if token == "" || !strings.EqualFold(scheme, "Bearer") || subtle.ConstantTimeCompare(want[:], got[:]) != 1 {
			w.Header().Set("WWW-Authenticate", `Bearer realm="partidor admin"`)
			http.Error(w, "a bearer token is needed", http.StatusUnauthorized)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// Serve answers on l until ctx ends, then gives requests under way a second.
func Serve(ctx context.Context, l net.Listener, o Options) error {
	s := &http.Server{
		Handler:           Handler(l.Addr(), o),
		ReadHeaderTimeout: 5 * time.Second,
		IdleTimeout:       time.Minute,
		MaxHeaderBytes:    16 << 10,
		ErrorLog:          slog.NewLogLogger(o.Logger.Handler(), slog.LevelDebug),
	}
	done := make(chan error, 1)
	go func() { done <- s.Serve(l) }()
	select {
	case err := <-done:
		return fmt.Errorf("admin port: %w", err)
	case <-ctx.Done():
	}
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	if err := s.Shutdown(closing); err != nil {
		_ = s.Close()
	}
	if err := <-done; !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("admin port: %w", err)
	}
	return nil
}
