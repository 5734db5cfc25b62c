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

// decider is one decision for key i.
type decider func(ctx context.Context, i int) (allowed bool, err error)

// subject is one way to decide. begin makes ready for a load.
type subject struct {
	name  string
	begin func(s *server, l load) (decide decider, end func(), err error)
	// refuses: it takes part where some keys are used up; clusters: where Redis is a cluster.
	refuses, clusters bool
}

func subjects() []subject {
	return []subject{
		{name: "ping", begin: beginPing},
		{name: "evalsha", begin: beginScript},
		{name: "redis_rate", begin: beginRedisRate, refuses: true, clusters: true},
		{name: "throttled", begin: beginThrottled},
		{name: "partidor plain", begin: func(s *server, l load) (decider, func(), error) {
			return beginPartidor(s, l, bucket.Options{BatchSize: 1, Workers: min(l.Callers, poolSize)})
		}},
		{name: ours, begin: func(s *server, l load) (decider, func(), error) {
			return beginPartidor(s, l, bucket.Options{})
		}, refuses: true, clusters: true},
		{name: "x/time/rate map", begin: beginLocal, refuses: true},
	}
}

// ours is the store as the gateway uses it, peer the one it is compared with.
const ours, peer = "partidor batched", "redis_rate"

// patience bounds what may take long on a busy machine, where every subject waits rather than fails.
const patience = 5 * time.Second

// poolSize is go-redis's own default on a machine of this size times two: every subject has the same number of connections.
const poolSize = 32

func client(s *server) redis.UniversalClient {
	return redis.NewUniversalClient(&redis.UniversalOptions{Addrs: s.addrs(), PoolSize: poolSize})
}

func names(keys int) []string {
	out := make([]string, keys)
	for i := range out {
		out[i] = fmt.Sprintf("tenant-%d", i)
	}
	return out
}

// beginPing is the floor: a round trip that decides nothing.
func beginPing(s *server, _ load) (decider, func(), error) {
	c := client(s)
	return func(ctx context.Context, _ int) (bool, error) { return true, c.Ping(ctx).Err() }, func() { _ = c.Close() }, nil
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

func beginScript(s *server, l load) (decider, func(), error) {
	c, script, key := client(s), redis.NewScript(plainScript), names(l.Keys)
	for i := range key {
		key[i] = "plain:" + key[i]
	}
	return func(ctx context.Context, i int) (bool, error) {
		return true, script.Run(ctx, c, []string{key[i]}, burst, perSecond).Err()
	}, func() { _ = c.Close() }, nil
}

func beginRedisRate(s *server, l load) (decider, func(), error) {
	c, key := client(s), names(l.Keys)
	limiter := redis_rate.NewLimiter(c)
	wide := redis_rate.Limit{Rate: perSecond, Burst: burst, Period: time.Second}
	return func(ctx context.Context, i int) (bool, error) {
		most := wide
		if l.usedUp(i) {
			most = redis_rate.PerHour(1)
		}
		r, err := limiter.Allow(ctx, key[i], most)
		return err == nil && r.Allowed == 1, err
	}, func() { _ = c.Close() }, nil
}

func beginThrottled(s *server, l load) (decider, func(), error) {
	c, key := client(s), names(l.Keys)
	store, err := goredisstore.NewCtx(c, "throttled:")
	if err != nil {
		return nil, nil, fmt.Errorf("begin throttled: %w", err)
	}
	limiter, err := throttled.NewGCRARateLimiterCtx(store, throttled.RateQuota{MaxRate: throttled.PerSec(perSecond), MaxBurst: burst})
	if err != nil {
		return nil, nil, fmt.Errorf("begin throttled: %w", err)
	}
	limiter.SetMaxCASAttemptsLimit(1000)
	return func(ctx context.Context, i int) (bool, error) {
		refused, _, err := limiter.RateLimitCtx(ctx, key[i], 1)
		return !refused, err
	}, func() { _ = c.Close() }, nil
}

func beginPartidor(s *server, l load, o bucket.Options) (decider, func(), error) {
	c, err := redisconn.New(redisconn.Options{
		Addrs: s.addrs(), Cluster: len(s.addrs()) > 1, PoolSize: poolSize, DialTimeout: patience, OpTimeout: patience,
	})
	if err != nil {
		return nil, nil, fmt.Errorf("begin partidor: %w", err)
	}
	o.Client, o.CallTimeout = c, patience
	store := bucket.NewRedis(o)
	wide := &limit.Rule{Capacity: burst, Refill: perSecond, PeriodSeconds: 1}
	small := &limit.Rule{Capacity: 1, Refill: 1, PeriodSeconds: 3600}
	limits := make([][]bucket.Limit, l.Keys)
	for i, tenant := range names(l.Keys) {
		limits[i] = []bucket.Limit{{
			Key: limit.Key{Tenant: tenant, Route: "create-order"}, Rule: wide, Base: limit.Whole, Cost: 1,
			Revision: limit.Revision{Epoch: 1, Number: 1},
		}}
		if l.usedUp(i) {
			limits[i][0].Rule = small
		}
	}
	return func(ctx context.Context, i int) (bool, error) {
			d, err := store.Take(ctx, limits[i])
			return d.Outcome == limit.Allowed, err
		}, func() {
			store.Close()
			_ = c.Close()
		}, nil
}

// localScale times the limit of the others is what the floor in memory needs so as never to refuse: it is that much faster.
const localScale = 1000

// beginLocal is the other floor: no Redis, no sharing, nothing that survives a restart.
func beginLocal(_ *server, l load) (decider, func(), error) {
	var limiters sync.Map
	key := names(l.Keys)
	return func(_ context.Context, i int) (bool, error) {
		have, ok := limiters.Load(key[i])
		if !ok {
			wide := rate.NewLimiter(localScale*perSecond, localScale*burst)
			if l.usedUp(i) {
				wide = rate.NewLimiter(rate.Every(time.Hour), 1)
			}
			have, _ = limiters.LoadOrStore(key[i], wide)
		}
		return have.(*rate.Limiter).Allow(), nil
	}, func() {}, nil
}
