package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"golang.org/x/sync/errgroup"

	"partidor.dev/partidor/rebalancer/internal/advise"
	"partidor.dev/partidor/rebalancer/internal/api"
	"partidor.dev/partidor/rebalancer/internal/board"
	"partidor.dev/partidor/rebalancer/internal/collect"
	"partidor.dev/partidor/rebalancer/internal/config"
	"partidor.dev/partidor/rebalancer/internal/console"
	"partidor.dev/partidor/rebalancer/internal/cycle"
	"partidor.dev/partidor/rebalancer/internal/leader"
	"partidor.dev/partidor/rebalancer/internal/ledger"
	"partidor.dev/partidor/rebalancer/internal/plan"
	"partidor.dev/partidor/rebalancer/internal/proxy"
	"partidor.dev/partidor/rebalancer/internal/upkeep"
	shared "partidor.dev/partidor/shared/rights/lease"
	"partidor.dev/partidor/shared/telemetry"
)

// scope names our spans and metrics.
const scope = "partidor.dev/partidor/rebalancer"

// Run works until ctx ends, then resigns the lead, answers what is under way and returns nil. An error means that it
// could not start, or lost what it cannot do without.
func Run(ctx context.Context, o Options) error {
	c, err := o.load()
	if err != nil {
		return err
	}
	var level slog.Level
	if err := level.UnmarshalText([]byte(c.Telemetry.LogLevel)); err != nil {
		return fmt.Errorf("telemetry.log_level: %w", err)
	}
	tel, err := telemetry.Start(ctx, telemetry.Options{Service: c.Telemetry.Service, Version: o.Version,
		Instance: c.Instance, LogOutput: o.LogOutput, LogLevel: level})
	if err != nil {
		return err
	}
	defer func() {
		if err := tel.Shutdown(ctx); err != nil {
			tel.Logger.Warn("telemetry lost at the end", "error", err)
		}
	}()
	conn, err := connectNATS(c, tel.Logger, o.NATS)
	if err != nil {
		return err
	}
	defer conn.Close()
	a := &app{options: o, config: c, telemetry: tel, conn: conn, started: time.Now()}
	if err := a.build(ctx); err != nil {
		return err
	}
	defer a.close()
	return a.run(ctx)
}

type app struct {
	options   Options
	config    *config.Config
	telemetry *telemetry.Telemetry
	conn      *nats.Conn
	started   time.Time

	store     store
	election  *leader.Elector
	lease     *lease // nil without PostgreSQL
	memory    *ledger.Memory
	collector *collect.Collector
	adviser   *advise.Adviser
	runner    *cycle.Runner
	keeper    *upkeep.Keeper
	voter     *proxy.Voter
	dead      *proxy.Keeper
	admin     *api.Server
	listener  net.Listener
	close     func()
}

// build makes the parts, each from those before it.
func (a *app) build(ctx context.Context) (err error) {
	tel, c := a.telemetry, a.config
	a.close = func() {}
	tokens, err := access(c)
	if err != nil {
		return err
	}
	values, err := c.Values()
	if err != nil {
		return err
	}
	rows := leader.Store(leader.NewMemory(a.started.UnixMilli()))
	if c.Postgres.Enabled() {
		pg, err := openPostgres(ctx, c, tel)
		if err != nil {
			return err
		}
		a.close = pg.Close
		a.lease = &lease{ledger: pg}
		a.store, rows = pg, a.lease
	} else if a.memory, err = ledger.NewMemory(c.RulesFile, time.Now); err != nil {
		return err
	} else {
		a.store = a.memory
	}
	a.election = leader.New(leader.Options{Store: rows, Holder: c.Instance, Lease: c.Lease.Duration, Logger: tel.Logger})
	meter, tracer := tel.MeterProvider.Meter(scope), tel.TracerProvider.Tracer(scope)
	parameters := func() plan.Parameters {
		if a.runner == nil { // only until the next line but one
			return values.Plan
		}
		return a.runner.Parameters().Plan
	}
	a.collector, err = collect.New(collect.Options{Conn: a.conn, Parameters: parameters, Logger: tel.Logger, Meter: meter, Window: a.window()})
	if err != nil {
		return err
	}
	a.adviser = advise.New(advise.Options{Conn: a.conn, Instance: c.Instance, Started: a.started.UnixMilli(),
		Logger: tel.Logger, Tracer: tracer, Repeat: a.repeat(), Held: a.collector.Share})
	a.runner, err = cycle.New(cycle.Options{Ledger: a.store, Collector: a.collector, Adviser: a.adviser, Base: values,
		Cycle: a.options.Cycle, Holder: c.Instance, Logger: tel.Logger, Tracer: tracer, Meter: meter})
	if err != nil {
		return err
	}
	if err := a.watchDecisions(meter); err != nil {
		return err
	}
	picture := board.New(a.store, a.collector)
	a.keeper = &upkeep.Keeper{Options: upkeep.Options{Ledger: a.store, Board: picture, Parameters: a.runner.Parameters, Logger: tel.Logger}}
	page, err := console.Handler("/console/")
	if err != nil {
		return fmt.Errorf("console: %w", err)
	}
	a.voter = proxy.NewVoter(proxy.VoterOptions{Conn: a.conn, Instance: c.Instance, Started: a.started, Logger: tel.Logger,
		Term: a.election.Term, Terms: shared.DefaultTerms()})
	a.dead = &proxy.Keeper{Ledger: a.store, Voter: a.voter, Control: func() string { return a.runner.Parameters().ControlDomain }, Holder: c.Instance, Logger: tel.Logger, Forget: a.collector.ForgetShares,
		Floor: func() float64 { return a.runner.Parameters().Plan.Floor },
		Proxy: &proxy.Proxy{Options: proxy.Options{Conn: a.conn, Instance: c.Instance, Started: a.started, Logger: tel.Logger, Repeat: 500 * time.Millisecond}}}
	a.admin = &api.Server{Console: page, Done: ctx.Done(),
		Ledger: a.store, Base: values, Board: picture, Rebalancer: a.runner, Leadership: a, Readiness: a.notReady,
		Metrics: tel.MetricsHandler(), Access: tokens, Instance: c.Instance, Version: a.options.Version, Started: a.started, Logger: tel.Logger,
	}
	if a.listener = a.options.Listener; a.listener == nil {
		if a.listener, err = new(net.ListenConfig).Listen(ctx, "tcp", c.Listen); err != nil {
			return fmt.Errorf("admin port: %w", err)
		}
	}
	return nil
}

// run starts everything and waits for its end: first the lead is given up, then the port is closed.
func (a *app) run(ctx context.Context) error {
	a.telemetry.Logger.Info("rebalancer started", "listen", a.listener.Addr().String(), "version", a.options.Version)
	work, ctx := errgroup.WithContext(ctx)
	work.Go(func() error { return a.collector.Run(ctx) })
	work.Go(func() error { return a.adviser.Run(ctx) })
	work.Go(func() error { return a.voter.Run(ctx) })
	work.Go(func() error { a.election.Run(ctx, a.lead); return nil })
	work.Go(func() error { a.announce(ctx); return nil })
	work.Go(func() error { return a.serve(ctx) })
	err := work.Wait()
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// lead is what only the leader does.
func (a *app) lead(ctx context.Context, term int64) {
	var work sync.WaitGroup
	work.Go(func() { a.keeper.Lead(ctx, term) })
	work.Go(func() { a.dead.Lead(ctx, term) })
	a.runner.Lead(ctx, term)
	work.Wait()
}

// window of the collector: short cycles, of demonstrations, need short ones.
func (a *app) window() time.Duration {
	if a.options.Cycle > 0 {
		return min(5*time.Second, max(time.Second, a.options.Cycle/3))
	}
	return 0
}

func (a *app) repeat() time.Duration {
	if a.options.Cycle > 0 {
		return min(5*time.Second, a.options.Cycle/2)
	}
	return 0
}
