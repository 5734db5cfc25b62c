package app

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/redis/go-redis/v9"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"partidor.dev/partidor/gateway/internal/config"
	"partidor.dev/partidor/gateway/internal/control/admin"
	"partidor.dev/partidor/gateway/internal/control/exchange"
	"partidor.dev/partidor/gateway/internal/control/home"
	"partidor.dev/partidor/gateway/internal/control/life"
	"partidor.dev/partidor/gateway/internal/control/rules"
	"partidor.dev/partidor/gateway/internal/control/usage"
	"partidor.dev/partidor/gateway/internal/hot"
	"partidor.dev/partidor/gateway/internal/hot/admit"
	"partidor.dev/partidor/gateway/internal/snapshot"
	"partidor.dev/partidor/shared/bucket"
	"partidor.dev/partidor/shared/rights/lease"
	"partidor.dev/partidor/shared/telemetry"
)

// scope names this code in telemetry.
const scope = "partidor.dev/partidor/gateway"

// stopWithin bounds the end of each background part.
const stopWithin = 5 * time.Second

// gateway is one gateway being built, run and taken down.
type gateway struct {
	options Options
	config  *config.Config
	started time.Time

	telemetry *telemetry.Telemetry
	logger    *slog.Logger
	meter     metric.Meter
	tracer    trace.Tracer

	background background
	closers    []func() // in the order of building

	draining atomic.Bool
	serving  atomic.Bool

	redis    redis.UniversalClient // nil with store: memory
	life     *life.Watcher         // of redis
	guard    *lease.Guard          // of redis
	store    bucket.Store
	holder   *snapshot.Holder
	loader   *rules.Loader
	source   string                   // of the rules, by name
	sourced  []func(generation int64) // told which generation of sources they are of
	listener *rules.Listener          // nil unless the source is a database
	nats     *nats.Conn               // nil without NATS
	home     *home.Home               // nil without NATS
	members  *usage.Members
	table    *usage.Table
	heat     *exchange.Heat                    // nil without an exchange
	exchange atomic.Pointer[exchange.Exchange] // nil without one
	admitter *admit.Admitter
	// remembers is the admitter, for parts that run before it is built.
	remembers atomic.Pointer[admit.Admitter]
	handler   *hot.Handler
	heart     background // ends before the others: who drains is no longer counted

	data, admin net.Listener
}

// Run serves until ctx ends, then drains. Errors before anything is served are faults of the configuration or of this
// host; once serving, only the loss of a listener ends Run with an error.
func Run(ctx context.Context, o Options) (err error) {
	c, err := o.load()
	if err != nil {
		return err
	}
	if err := checkRules(c); err != nil {
		return err
	}
	g := &gateway{options: o, config: c, started: time.Now(), telemetry: o.Telemetry}
	if g.telemetry == nil {
		g.telemetry, err = startTelemetry(ctx, c, o.Version)
		if err != nil {
			return err
		}
		defer func() { // a collector that is away is no reason to end with a failure
			if lost := g.telemetry.Shutdown(context.WithoutCancel(ctx)); lost != nil {
				g.telemetry.Logger.Warn("telemetry lost at the end", "error", lost)
			}
		}()
	}
	g.logger = g.telemetry.Logger
	g.meter = g.telemetry.MeterProvider.Meter(scope)
	g.tracer = g.telemetry.TracerProvider.Tracer(scope)
	g.background.logger, g.heart.logger = g.logger, g.logger
	defer g.close()
	if err := g.build(ctx); err != nil {
		return g.refused(err)
	}
	return g.serve(ctx)
}

func startTelemetry(ctx context.Context, c *config.Config, version string) (*telemetry.Telemetry, error) {
	level := new(slog.LevelVar)
	if err := level.UnmarshalText([]byte(c.Telemetry.LogLevel)); err != nil {
		return nil, fmt.Errorf("telemetry.log_level: %w", err)
	}
	return telemetry.Start(ctx, telemetry.Options{
		Service: c.Telemetry.Service, Version: version, Region: c.Region, Instance: c.Instance, LogLevel: level,
	})
}

// build makes every part in the order of the package comment and starts those that work in the background.
func (g *gateway) build(ctx context.Context) error {
	g.holder = snapshot.NewHolder(g.config.Region)
	for _, step := range []func(context.Context) error{
		g.listen, g.buildStore, g.buildRules, g.serveAdmin, g.connect, g.buildUsage, g.buildLease, g.buildExchange, g.buildHome, g.buildAdmitter, g.startRules, g.claim, g.warm, g.buildHandler,
	} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// close releases what build has opened, last first.
func (g *gateway) close() {
	g.heart.stop(stopWithin)
	g.background.stop(stopWithin)
	for i := len(g.closers) - 1; i >= 0; i-- {
		g.closers[i]()
	}
}

func (g *gateway) onClose(f func()) { g.closers = append(g.closers, f) }

// listen takes both ports early: a port in use is found before anything else is opened.
func (g *gateway) listen(ctx context.Context) (err error) {
	if g.data, err = g.port(ctx, g.options.Listener, "listen", g.config.Listen); err != nil {
		return err
	}
	g.admin, err = g.port(ctx, g.options.AdminListener, "admin.listen", g.config.Admin.Listen)
	return err
}

func (g *gateway) port(ctx context.Context, given net.Listener, field, address string) (net.Listener, error) {
	l := given
	if l == nil {
		var err error
		if l, err = new(net.ListenConfig).Listen(ctx, "tcp", address); err != nil {
			return nil, fmt.Errorf("%s: %w", field, err)
		}
	}
	g.onClose(func() { _ = l.Close() })
	return l, nil
}

func (g *gateway) serveAdmin(ctx context.Context) error {
	token, err := g.adminToken()
	if err != nil {
		return err
	}
	o := admin.Options{
		Version: version(g.options.Version, g.config), Checks: g.checks(), Metrics: g.telemetry.MetricsHandler(),
		Pages: map[string]http.Handler{"GET /explain": http.HandlerFunc(g.explain), "GET /top": http.HandlerFunc(g.top)},
		Token: token, Logger: g.logger,
	}
	g.background.start(ctx, "admin port", func(ctx context.Context) error { return admin.Serve(ctx, g.admin, o) })
	return nil
}
