package config

import (
	"cmp"
	"fmt"
	"os"
	"time"
)

// SetDefaults fills in what the file left out.
func (c *Config) SetDefaults() {
	or(&c.Listen, "127.0.0.1:8080")
	or(&c.Admin.Listen, "127.0.0.1:9090")
	or(&c.Store, StoreRedis)
	if c.Instance == "" {
		host, err := os.Hostname()
		if err != nil {
			host = "gateway"
		}
		c.Instance = fmt.Sprintf("%.40s-%d", host, os.Getpid())
	}
	c.Server.defaults()
	or(&c.TLS.MinVersion, "1.2")
	c.Identity.defaults()
	c.Addresses.defaults()
	if len(c.CORS.Origins) > 0 {
		or(&c.CORS.MaxAge, 10*time.Minute)
	}
	for name, u := range c.Upstreams {
		u.defaults()
		c.Upstreams[name] = u
	}
	for i := range c.Routes {
		c.Routes[i].defaults()
	}
	if len(c.Redis.Addresses) == 0 {
		c.Redis.Addresses = []string{"127.0.0.1:6379"}
	}
	or(&c.Redis.PoolSize, 16)
	or(&c.Redis.DialTimeout, time.Second)
	or(&c.Postgres.Poll, 30*time.Second)
	or(&c.Postgres.MaxConnections, 4)
	or(&c.Snapshot.Interval, 30*time.Second)
	c.Decision.defaults()
	c.Fallback.defaults(c.Decision.Deadline)
	or(&c.Exchange.FastLoop, "on")
	or(&c.Exchange.Floor, 50_000)
	or(&c.Exchange.HomeBudget, 150*time.Millisecond)
	or(&c.Usage.Interval, 2*time.Second)
	or(&c.Usage.Heartbeat, time.Second)
	or(&c.Usage.MaxKeys, 200_000)
	or(&c.Telemetry.Service, "partidor-gateway")
	or(&c.Telemetry.LogLevel, "info")
}

func or[T comparable](field *T, value T) { *field = cmp.Or(*field, value) }

func (s *Server) defaults() {
	or(&s.ReadHeaderTimeout, 10*time.Second)
	or(&s.BodyTimeout, 60*time.Second)
	or(&s.IdleTimeout, 120*time.Second)
	or(&s.MaxHeaderBytes, 64<<10)
	or(&s.MaxConcurrentStreams, 250)
	or(&s.DrainTimeout, 30*time.Second)
}

func (i *Identity) defaults() {
	or(&i.Mode, IdentityAPIKey)
	or(&i.Header, "X-Api-Key")
	or(&i.TenantHeader, "X-Tenant-Id")
}

func (a *Addresses) defaults() {
	or(&a.Header, XForwardedForHeader)
	or(&a.IPv4Prefix, 32)
	or(&a.IPv6Prefix, 64)
	or(&a.Guard.Window, time.Minute)
}

func (u *Upstream) defaults() {
	or(&u.Balance, BalanceRoundRobin)
	or(&u.Protocol, ProtocolHTTP1)
	or(&u.ConnectTimeout, 2*time.Second)
	or(&u.IdleConnections, 256)
	or(&u.IdleTimeout, 60*time.Second)
	or(&u.Health.Interval, 5*time.Second)
	or(&u.Health.Timeout, time.Second)
	or(&u.Health.Unhealthy, 3)
	or(&u.Health.Healthy, 2)
	or(&u.Breaker.Failures, 10)
	or(&u.Breaker.Window, max(20, u.Breaker.Failures))
	or(&u.Breaker.Delay, 5*time.Second)
	for i := range u.Targets {
		or(&u.Targets[i].Weight, 1)
	}
}

func (r *Route) defaults() {
	or(&r.Timeouts.Response, 30*time.Second)
	if r.Upgrades == nil {
		r.Upgrades = []string{"websocket"}
	}
	or(&r.Retry.Attempts, 1)
	if r.Retry.Attempts > 1 {
		or(&r.Retry.Delay, 25*time.Millisecond)
		or(&r.Retry.Budget, 0.2)
		if len(r.Retry.On) == 0 {
			r.Retry.On = []int{502, 503, 504}
		}
	}
	or(&r.GRPC.LimitedStatus, 8)
}

func (d *Decision) defaults() {
	or(&d.Deadline, 5*time.Millisecond)
	if d.Default == (DefaultRule{}) {
		d.Default = DefaultRule{Capacity: 20, Refill: 10}
	}
	or(&d.Default.PeriodSeconds, 1)
	or(&d.Batch.Workers, 2)
	or(&d.Batch.Size, 64)
	or(&d.Prefetch.MaxTokens, 50)
	or(&d.Prefetch.Horizon, 100*time.Millisecond)
	or(&d.DeniedCache, 100*time.Millisecond)
	or(&d.LossHorizon, 10*time.Minute)
}

func (b *Fallback) defaults(deadline time.Duration) {
	or(&b.Mode, FallbackLocal)
	or(&b.Instances, 1)
	or(&b.MaxBuckets, 200_000)
	or(&b.Breaker.FailureRate, 0.5)
	or(&b.Breaker.MinCalls, 20)
	or(&b.Breaker.Window, 2*time.Second)
	or(&b.Breaker.Slow, deadline)
	or(&b.Breaker.Delay, 250*time.Millisecond)
	or(&b.Breaker.MaxDelay, 5*time.Second)
}
