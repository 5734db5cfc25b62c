package hot

import (
	"context"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"partidor.dev/partidor/gateway/internal/config"
	"partidor.dev/partidor/gateway/internal/hot/admit"
	"partidor.dev/partidor/gateway/internal/hot/identify"
	"partidor.dev/partidor/shared/limit"
)

// Admitter decides requests. Admit answers within the decision deadline, never fails, and is called by many goroutines.
type Admitter interface {
	Admit(ctx context.Context, now time.Time, req admit.Request) limit.Decision
}

// Options are what a Handler is made of. Config, Admitter and Tenants are needed, all else has a default.
type Options struct {
	// Config has been completed and validated.
	Config   *config.Config
	Admitter Admitter
	// Tenants is the newest snapshot. It is called once per request and should be one atomic load.
	Tenants func() identify.Tenants
	// Ready tells whether there are rules to decide by; until then every request is answered 503. Default: always.
	Ready func() bool
	// Now is the time of day. Default time.Now.
	Now func() time.Time

	Logger *slog.Logger
	// Tracer and Meter default to none.
	Tracer trace.Tracer
	Meter  metric.Meter
}

// Handler is the data port's http.Handler. Configurations are exchanged under it by Reload.
type Handler struct {
	opts      Options
	telemetry *telemetry
	journal   *journal
	inFlight  inFlight

	current atomic.Pointer[generation]
	mu      sync.Mutex // Held by Reload and Close.
}

// New builds the handler and starts the health checks of its upstreams. Close ends them.
func New(o Options) (*Handler, error) {
	if o.Ready == nil {
		o.Ready = func() bool { return true }
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	t, err := newTelemetry(o.Tracer, o.Meter)
	if err != nil {
		return nil, err
	}
	h := &Handler{opts: o, telemetry: t, journal: newJournal(o.Logger)}
	g, err := newGeneration(o.Config, nil, o)
	if err != nil {
		return nil, err
	}
	h.current.Store(g)
	return h, nil
}

// Reload puts a configuration in the place of the one before, as a whole or, with an error, not at all. Requests in
// flight end under the one they began with. Upstreams whose section stays the same keep connections and breakers.
func (h *Handler) Reload(c *config.Config) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	old := h.current.Load()
	g, err := newGeneration(c, old, h.opts)
	if err != nil {
		return err
	}
	h.current.Store(g)
	old.closeExcept(g)
	return nil
}

// Close ends health checks and idle connections. Requests in flight go on.
func (h *Handler) Close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.current.Load().closeExcept(nil)
}

// ServeHTTP takes one request along the path.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	x := exchange{handler: h, generation: h.current.Load(), began: h.opts.Now(), in: r}
	x.recorder.ResponseWriter = w
	if r.ProtoMajor == 2 {
		x.recorder.Stall = x.generation.silence
	}
	defer x.recorder.Done()
	h.inFlight.enter()
	defer h.inFlight.leave()
	ctx := h.telemetry.begin(&x)
	defer x.end()
	x.serve(ctx)
	if x.recorder.Status == 0 {
		// The client has left. Returning would answer it 200; this ends the connection or the stream.
		panic(http.ErrAbortHandler)
	}
}
