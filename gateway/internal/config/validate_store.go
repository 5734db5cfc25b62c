package config

import (
	"math"
	"net/url"
	"time"

	"partidor.dev/partidor/shared/limit"
)

func (c *Config) validateStores(f *faults) {
	oneOf(f, "store", c.Store, StoreRedis, StoreMemory)
	if c.Store == StoreMemory && c.NATS.Enabled() {
		f.Add("store", "memory is for a single instance: shares cannot move without Redis, leave nats out")
	}
	c.Redis.validate(f)
	for i, u := range c.NATS.URLs {
		if p, err := url.Parse(u); err != nil || p.Host == "" {
			f.Add(index("nats.urls", i), "must be nats://host:port or tls://host:port")
		} else if p.User != nil {
			f.Add(index("nats.urls", i), "must not hold a password: give credentials_file or nkey_file")
		}
	}
	onlyOne(f, "nats", "credentials_file", c.NATS.CredentialsFile, "nkey_file", c.NATS.NKeyFile)
	c.Postgres.validate(f)
	switch {
	case c.Postgres.Enabled() && c.Rules.File != "":
		f.Add("rules.file", "give postgres or rules.file, not both")
	case !c.Postgres.Enabled() && c.Rules.File == "":
		f.Add("rules.file", "rules must come from postgres or from a file")
	}
	positive(f, "snapshot.interval", c.Snapshot.Interval)
}

func (r *Redis) validate(f *faults) {
	for i, a := range r.Addresses {
		address(f, index("redis.addresses", i), a)
	}
	if r.Master != "" && r.Cluster {
		f.Add("redis", "give master (Sentinel) or cluster, not both")
	}
	if len(r.Addresses) > 1 && r.Master == "" && !r.Cluster {
		f.Add("redis.addresses", "several addresses need master (Sentinel) or cluster")
	}
	if r.Cluster && r.DB != 0 {
		f.Add("redis.db", "a cluster has no databases")
	}
	atLeast(f, "redis.db", r.DB, 0)
	between(f, "redis.pool_size", r.PoolSize, 1, 4096)
	positive(f, "redis.dial_timeout", r.DialTimeout)
	onlyOne(f, "redis", "password_file", r.PasswordFile, "password_env", r.PasswordEnv)
}

func (p *Postgres) validate(f *faults) {
	given := 0
	for _, v := range []string{p.URL, p.URLFile, p.URLEnv} {
		if v != "" {
			given++
		}
	}
	if given > 1 {
		f.Add("postgres", "give one of url, url_file and url_env")
	}
	if p.URL != "" {
		u, err := url.Parse(p.URL)
		if err != nil || u.Scheme != "postgres" && u.Scheme != "postgresql" {
			f.Add("postgres.url", "must be postgres://user@host:port/database")
		} else if _, secret := u.User.Password(); secret || u.Query().Has("password") {
			f.Add("postgres.url", "must not hold a password: give url_file or url_env")
		}
	}
	positive(f, "postgres.poll", p.Poll)
	between(f, "postgres.max_connections", p.MaxConnections, 1, 100)
}

func (d *Decision) validate(f *faults) {
	positive(f, "decision.deadline", d.Deadline)
	if d.Deadline > time.Second {
		f.Add("decision.deadline", "%s, must be at most 1s", d.Deadline)
	}
	rule := limit.Rule{Capacity: d.Default.Capacity, Refill: d.Default.Refill, PeriodSeconds: d.Default.PeriodSeconds}
	if err := rule.Validate(); err != nil {
		f.Add("decision.default", "%s", err)
	}
	between(f, "decision.batch.workers", d.Batch.Workers, 1, 256)
	between(f, "decision.batch.size", d.Batch.Size, 1, 1024)
	between(f, "decision.prefetch.max_tokens", d.Prefetch.MaxTokens, 1, 1_000_000)
	positive(f, "decision.prefetch.horizon", d.Prefetch.Horizon)
	if d.DeniedCache > 100*time.Millisecond {
		f.Add("decision.denied_cache", "%s, must be at most 100ms", d.DeniedCache)
	}
	positive(f, "decision.loss_horizon", d.LossHorizon)
}

func (b *Fallback) validate(f *faults) {
	oneOf(f, "fallback.mode", b.Mode, FallbackLocal, FallbackStrict)
	between(f, "fallback.instances", b.Instances, 1, 100_000)
	between(f, "fallback.max_buckets", b.MaxBuckets, 1024, 10_000_000)
	r := b.Breaker
	if r.FailureRate <= 0 || r.FailureRate > 1 || math.IsNaN(r.FailureRate) {
		f.Add("fallback.breaker.failure_rate", "%v, must be above 0, at most 1", r.FailureRate)
	}
	between(f, "fallback.breaker.min_calls", r.MinCalls, 1, 100_000)
	positive(f, "fallback.breaker.window", r.Window)
	positive(f, "fallback.breaker.slow", r.Slow)
	positive(f, "fallback.breaker.delay", r.Delay)
	if r.MaxDelay < r.Delay {
		f.Add("fallback.breaker.max_delay", "%s, must be at least delay %s", r.MaxDelay, r.Delay)
	}
}
