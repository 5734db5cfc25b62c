package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/go-redis/redis_rate/v10"
	"github.com/redis/go-redis/v9"
	"github.com/throttled/throttled/v2"
	"github.com/throttled/throttled/v2/store/goredisstore.v9"
	"golang.org/x/time/rate"

	"partidor.dev/partidor/shared/bucket"
	"partidor.dev/partidor/shared/bucket/redisconn"
	"partidor.dev/partidor/shared/limit"
)

// The limit everybody enforces: so large that nothing is refused within a run.
const (
	burst     = 1_000_000
	perSecond = 100_000
)

// subject is one way to decide. begin makes ready for so many keys; decide is one decision for key i.
type subject struct {
	name  string
	begin func(addr string, keys, callers int) (decide func(ctx context.Context, i int) error, end func(), err error)
}

func subjects() []subject {
	return []subject{
		{"ping", beginPing},
		{"evalsha", beginScript},
		{"redis_rate", beginRedisRate},
		{"throttled", beginThrottled},
		{"partidor plain", func(addr string, keys, callers int) (func(context.Context, int) error, func(), error) {
			return beginPartidor(addr, keys, bucket.Options{BatchSize: 1, Workers: min(callers, poolSize)})
		}},
		{"partidor batched", func(addr string, keys, _ int) (func(context.Context, int) error, func(), error) {
			return beginPartidor(addr, keys, bucket.Options{})
		}},
		{"x/time/rate map", beginLocal},
	}
}

// poolSize is go-redis's own default on a machine of this size times two: every subject has the same number of connections.
const poolSize = 32

func client(addr string) *redis.Client {
	return redis.NewClient(&redis.Options{Addr: addr, PoolSize: poolSize})
}

func names(keys int) []string {
	out := make([]string, keys)
	for i := range out {
		out[i] = fmt.Sprintf("tenant-%d", i)
	}
	return out
}

// beginPing is the floor: a round trip that decides nothing.
func beginPing(addr string, _, _ int) (func(context.Context, int) error, func(), error) {
	c := client(addr)
	return func(ctx context.Context, _ int) error { return c.Ping(ctx).Err() }, func() { _ = c.Close() }, nil
}

// plainScript is the smallest honest token bucket: what a team writes on its first day.
const plainScript = `
local t = redis.call('TIME')
local now = t[1] + t[2] / 1e6
local f = redis.call('HMGET', KEYS[1], 'tokens', 'ts')
local cap, rate = tonumber(ARGV[1]), tonumber(ARGV[2])
local tokens = math.min(cap, (tonumber(f[1]) or cap) + math.max(0, now - (tonumber(f[2]) or now)) * rate)
local ok = tokens >= 1 and 1 or 0
redis.call('HSET', KEYS[1], 'tokens', string.format('%.17g', tokens - ok), 'ts', string.format('%.17g', now))
redis.call('PEXPIRE', KEYS[1], math.ceil(2000 * cap / rate))
return {ok, tostring(tokens - ok)}`

func beginScript(addr string, keys, _ int) (func(context.Context, int) error, func(), error) {
	c, script, key := client(addr), redis.NewScript(plainScript), names(keys)
	for i := range key {
		key[i] = "plain:" + key[i]
	}
	return func(ctx context.Context, i int) error {
		return script.Run(ctx, c, []string{key[i]}, burst, perSecond).Err()
	}, func() { _ = c.Close() }, nil
}

func beginRedisRate(addr string, keys, _ int) (func(context.Context, int) error, func(), error) {
	c, key := client(addr), names(keys)
	limiter := redis_rate.NewLimiter(c)
	l := redis_rate.Limit{Rate: perSecond, Burst: burst, Period: time.Second}
	return func(ctx context.Context, i int) error {
		r, err := limiter.Allow(ctx, key[i], l)
		if err == nil && r.Allowed != 1 {
			return errRefused
		}
		return err
	}, func() { _ = c.Close() }, nil
}

func beginThrottled(addr string, keys, _ int) (func(context.Context, int) error, func(), error) {
	c, key := client(addr), names(keys)
	store, err := goredisstore.NewCtx(c, "throttled:")
	if err != nil {
		return nil, nil, fmt.Errorf("begin throttled: %w", err)
	}
	limiter, err := throttled.NewGCRARateLimiterCtx(store, throttled.RateQuota{MaxRate: throttled.PerSec(perSecond), MaxBurst: burst})
	if err != nil {
		return nil, nil, fmt.Errorf("begin throttled: %w", err)
	}
	limiter.SetMaxCASAttemptsLimit(1000)
	return func(ctx context.Context, i int) error {
		refused, _, err := limiter.RateLimitCtx(ctx, key[i], 1)
		if refused {
			return errRefused
		}
		return err
	}, func() { _ = c.Close() }, nil
}

func beginPartidor(addr string, keys int, o bucket.Options) (func(context.Context, int) error, func(), error) {
	c, err := redisconn.New(redisconn.Options{Addrs: []string{addr}, PoolSize: poolSize})
	if err != nil {
		return nil, nil, fmt.Errorf("begin partidor: %w", err)
	}
	o.Client = c
	store := bucket.NewRedis(o)
	rule := &limit.Rule{Capacity: burst, Refill: perSecond, PeriodSeconds: 1}
	limits := make([][]bucket.Limit, keys)
	for i, tenant := range names(keys) {
		limits[i] = []bucket.Limit{{
			Key: limit.Key{Tenant: tenant, Route: "create-order"}, Rule: rule, Base: limit.Whole, Cost: 1,
			Revision: limit.Revision{Epoch: 1, Number: 1},
		}}
	}
	return func(ctx context.Context, i int) error {
			d, err := store.Take(ctx, limits[i])
			if err == nil && d.Outcome != limit.Allowed {
				return errRefused
			}
			return err
		}, func() {
			store.Close()
			_ = c.Close()
		}, nil
}

// beginLocal is the other floor: no Redis, no sharing, nothing that survives a restart.
func beginLocal(_ string, keys, _ int) (func(context.Context, int) error, func(), error) {
	var limiters sync.Map
	key := names(keys)
	return func(_ context.Context, i int) error {
		l, ok := limiters.Load(key[i])
		if !ok {
			l, _ = limiters.LoadOrStore(key[i], rate.NewLimiter(perSecond, burst))
		}
		if !l.(*rate.Limiter).Allow() {
			return errRefused
		}
		return nil
	}, func() {}, nil
}
