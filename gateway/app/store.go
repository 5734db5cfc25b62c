package app

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"

	"partidor.dev/partidor/gateway/internal/config"
	"partidor.dev/partidor/gateway/internal/control/life"
	"partidor.dev/partidor/gateway/internal/control/usage"
	"partidor.dev/partidor/gateway/internal/hot/admit"
	"partidor.dev/partidor/shared/bucket"
	"partidor.dev/partidor/shared/bucket/redisconn"
	sharedconfig "partidor.dev/partidor/shared/config"
	"partidor.dev/partidor/shared/fallback"
)

// go-redis has a log of its own, one line per failed dial. What matters of that is told by the breaker, once per change.
func init() { redis.SetLogger(silence{}) }

type silence struct{}

func (silence) Printf(context.Context, string, ...any) {}

// buildStore makes the store of buckets. It connects when it is first asked: a gateway starts without its Redis.
func (g *gateway) buildStore(context.Context) error {
	if g.config.Store == config.StoreMemory {
		g.store = bucket.NewMemory(time.Now)
		return nil
	}
	r := &g.config.Redis
	o := redisconn.Options{
		Addrs: r.Addresses, Master: r.Master, Cluster: r.Cluster, DB: r.DB,
		Username: r.Username, PasswordFile: r.PasswordFile,
		TLS: r.TLS.Enabled, CAFile: r.TLS.CAFile, CertFile: r.TLS.CertFile, KeyFile: r.TLS.KeyFile, TLSServer: r.TLS.ServerName,
		PoolSize: r.PoolSize, DialTimeout: r.DialTimeout, Name: "partidor-gateway-" + g.config.Instance,
	}
	var err error
	if r.PasswordEnv != "" {
		if o.Password, err = sharedconfig.Secret("redis.password", "", r.PasswordEnv); err != nil {
			return err
		}
	}
	if g.life, err = life.New(life.Options{Logger: g.logger, Meter: g.meter}); err != nil {
		return err
	}
	o.Greet = g.life.Greet
	if g.redis, err = redisconn.New(o); err != nil {
		return &sharedconfig.Fault{Field: "redis", Err: err}
	}
	g.onClose(func() { _ = g.redis.Close() })
	damaged, err := newFindings(g)
	if err != nil {
		return err
	}
	calls, err := newCalls(g.meter)
	if err != nil {
		return err
	}
	d := &g.config.Decision
	store := bucket.NewRedis(bucket.Options{
		Client: g.redis, Workers: d.Batch.Workers, BatchSize: d.Batch.Size, LossHorizon: d.LossHorizon, Found: damaged.found,
		Called: calls.called,
	})
	g.onClose(store.Close)
	g.life.Tell(store.SetLoss)
	g.sourced = append(g.sourced, store.SetGeneration)
	g.store = store
	return nil
}

func (g *gateway) buildAdmitter(ctx context.Context) (err error) {
	d, f := &g.config.Decision, &g.config.Fallback
	g.admitter, err = admit.New(time.Now(), admit.Options{
		Rules: g.holder, Store: g.store, Counter: &counting{g.table, g.heat},
		Deadline:  d.Deadline,
		Elsewhere: g.elsewhere(),
		Instances: g.members.Live,
		Fenced:    g.fenced(),
		Strict:    f.Mode == config.FallbackStrict, MaxBuckets: f.MaxBuckets,
		Breaker: fallback.BreakerOptions{
			FailureRate: f.Breaker.FailureRate, MinCalls: f.Breaker.MinCalls, Window: f.Breaker.Window,
			Slow: f.Breaker.Slow, Delay: f.Breaker.Delay, MaxDelay: f.Breaker.MaxDelay,
		},
		Prefetch:    admit.Prefetch{Disabled: d.Prefetch.Disabled, MaxTokens: d.Prefetch.MaxTokens, Horizon: d.Prefetch.Horizon},
		DeniedCache: d.DeniedCache,
		Logger:      g.logger, Tracer: g.tracer, Meter: g.meter,
	})
	if err != nil {
		return err
	}
	g.remembers.Store(g.admitter)
	g.background.start(ctx, "admit", g.admitter.Run)
	if g.life != nil {
		g.life.Tell(func(time.Time) { g.admitter.Distrust() })
		g.background.start(ctx, "life of redis", func(ctx context.Context) error { return g.life.Run(ctx, g.redis) })
	}
	return nil
}

// buildUsage counts what is decided, reports it over NATS, and hears who else lives.
func (g *gateway) buildUsage(ctx context.Context) error {
	u := &g.config.Usage
	g.members = usage.NewMembers(g.config.Instance, usage.Period(u.Heartbeat), g.config.Fallback.Instances)
	g.table = usage.NewTable(u.MaxKeys)
	if err := g.table.ObserveTenants(g.meter, g.config.Telemetry.Tenants); err != nil {
		return err
	}
	who := usage.Identity{Region: g.config.Region, Instance: g.config.Instance, Started: g.started}
	var conn usage.Publisher = usage.Nobody{}
	if g.nats != nil {
		conn = g.nats
		heart := usage.NewHeart(g.nats, who, u.Heartbeat, g.members, g.vitals, g.logger)
		g.heart.start(ctx, "heartbeats", heart.Run)
	}
	reporter, err := usage.NewReporter(g.table, conn, who, u.Interval, g.logger, g.meter)
	if err != nil {
		return err
	}
	g.background.start(ctx, "usage reports", reporter.Run)
	return nil
}

func (g *gateway) vitals() usage.Vitals {
	s := g.loader.Status()
	return usage.Vitals{Rules: s.Revision, Stale: s.Stale, Degraded: g.serving.Load() && g.admitter.Degraded()}
}
