package app

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/exaring/otelpgx"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"partidor.dev/partidor/gateway/internal/config"
	"partidor.dev/partidor/gateway/internal/control/life"
	"partidor.dev/partidor/gateway/internal/control/rules"
	"partidor.dev/partidor/gateway/internal/watch"
	sharedconfig "partidor.dev/partidor/shared/config"
	"partidor.dev/partidor/shared/limit"
)

// connectTimeout bounds a connection to PostgreSQL whose URL says nothing else.
const connectTimeout = 5 * time.Second

// buildRules makes the loader and its source; nothing is read yet.
func (g *gateway) buildRules(ctx context.Context) error {
	o := rules.Options{
		Holder: g.holder, Default: defaultRule(g.config.Decision.Default),
		Poll: g.config.Postgres.Poll, File: g.config.Snapshot.File, SaveEvery: g.config.Snapshot.Interval,
		Logger: g.logger, Meter: g.meter, Tracer: g.tracer,
	}
	floor := limit.Share(g.config.Exchange.Floor)
	if g.config.Rules.File != "" {
		o.Source, g.source = rules.NewFile(g.config.Rules.File, g.config.Region, floor), "file "+g.config.Rules.File
	} else {
		pool, err := g.openPostgres(ctx)
		if err != nil {
			return err
		}
		o.Source = rules.NewLedger(pool, g.config.Region, floor)
	}
	var err error
	g.loader, err = rules.New(o)
	return err
}

func defaultRule(d config.DefaultRule) *limit.Rule {
	return &limit.Rule{Capacity: d.Capacity, Refill: d.Refill, PeriodSeconds: d.PeriodSeconds}
}

func (g *gateway) openPostgres(ctx context.Context) (*pgxpool.Pool, error) {
	p := &g.config.Postgres
	url := p.URL
	if url == "" {
		var err error
		if url, err = sharedconfig.Secret("postgres.url", p.URLFile, p.URLEnv); err != nil {
			return nil, err
		}
	}
	c, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, fmt.Errorf("postgres.url: %w", err) // pgx leaves the password out
	}
	c.MaxConns = int32(p.MaxConnections)
	c.ConnConfig.Tracer = otelpgx.NewTracer(otelpgx.WithTracerProvider(g.telemetry.TracerProvider), otelpgx.WithMeterProvider(g.telemetry.MeterProvider))
	if c.ConnConfig.ConnectTimeout == 0 || c.ConnConfig.ConnectTimeout > time.Minute {
		c.ConnConfig.ConnectTimeout = connectTimeout
	}
	if c.ConnConfig.RuntimeParams["application_name"] == "" {
		c.ConnConfig.RuntimeParams["application_name"] = "partidor-gateway " + g.config.Instance
	}
	pool, err := pgxpool.NewWithConfig(ctx, c)
	if err != nil {
		return nil, fmt.Errorf("postgres: %w", err)
	}
	g.onClose(pool.Close)
	g.source = ledgerName(c.ConnConfig)
	listener := c.ConnConfig.Copy()
	listener.Tracer = nil // one wait for ever is no span
	g.listener = &rules.Listener{Config: listener, Logger: g.logger}
	return pool, nil
}

// ledgerName tells one ledger from another: by its servers, the first one first, and the database.
func ledgerName(c *pgx.ConnConfig) string {
	name := fmt.Sprintf("postgres %s:%d", c.Host, c.Port)
	for _, f := range c.Fallbacks {
		if server := fmt.Sprintf(",%s:%d", f.Host, f.Port); !strings.Contains(name+",", server+",") && !strings.HasSuffix(name, " "+server[1:]) {
			name += server
		}
	}
	return name + "/" + c.Database
}

// claim lets the buckets go by this gateway's rules if its source is another than the one before, and goes on to look whether it
// still is. A Redis that is away is asked later.
func (g *gateway) claim(ctx context.Context) error {
	if g.redis == nil {
		return nil
	}
	source := life.NewSource(life.SourceOptions{
		Name:  g.source,
		Ready: func() bool { s := g.loader.Status(); return s.Loaded && !s.Stale },
		Tell: func(generation int64) {
			for _, f := range g.sourced {
				f(generation)
			}
		},
		Logger: g.logger,
	})
	if err := source.Look(ctx, g.redis); err != nil {
		g.logger.DebugContext(ctx, "source of the rules not compared yet", "error", err)
	}
	g.background.start(ctx, "source of the rules", func(ctx context.Context) error { return source.Run(ctx, g.redis) })
	return nil
}

// startRules loads once, then follows the source. Without anything to serve by the gateway runs, not ready, and tries on.
func (g *gateway) startRules(ctx context.Context) error {
	if err := g.loader.Start(ctx); err != nil {
		g.logger.ErrorContext(ctx, "not ready", "error", g.noRules(err))
	}
	g.background.start(ctx, "rules", g.loader.Run)
	if g.listener != nil {
		g.listener.Announce, g.listener.Look = g.loader.Announce, g.loader.Look
		g.background.start(ctx, "ledger listener", g.listener.Run)
	}
	if file := g.config.Rules.File; file != "" {
		g.background.start(ctx, "rules file", func(ctx context.Context) error {
			return watch.File(ctx, file, g.loader.Look, g.logger)
		})
	}
	return nil
}
