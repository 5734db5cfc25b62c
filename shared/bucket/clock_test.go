package bucket

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"partidor.dev/partidor/lua"
	"partidor.dev/partidor/shared/bucket/redisconn"
	"partidor.dev/partidor/shared/limit"
	"partidor.dev/partidor/shared/testenv"
)

// testClock makes the shipped scripts run on a clock that the test sets, and writes the TTLs they ask for into a hash instead
// of setting them, so that a slow machine cannot expire a bucket in the middle of a test.
const testClock = `
local server = redis
local redis = {
  pcall = server.pcall,
  call = function(name, key, ...)
    if name == 'PEXPIRE' then return server.call('HSET', 'test:ttl', key, ...) end
    if name == 'PERSIST' then return server.call('HDEL', 'test:ttl', key) end
    return server.call(name, key, ...)
  end,
}
local function now_us() return tonumber(redis.call('GET', 'test:now')) end
`

// world is the same buckets in memory and in a real Redis, under one clock.
type world struct {
	tb     testing.TB
	now    int64
	client redis.UniversalClient
	redis  *Redis
	memory *Memory
}

func connect(tb testing.TB, addr string) redis.UniversalClient {
	tb.Helper()
	client, err := redisconn.New(redisconn.Options{Addrs: []string{addr}, OpTimeout: 20 * time.Second})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = client.Close() })
	return client
}

func newWorld(tb testing.TB) *world {
	w := &world{tb: tb, client: connect(tb, testenv.StartRedis(tb).Addr)}
	w.redis = NewRedis(Options{Client: w.client, CallTimeout: 20 * time.Second, Script: lua.OnClock(testClock, lua.Take)})
	tb.Cleanup(w.redis.Close)
	return w
}

// epoch is where the clock of a test begins.
const epoch = 1_760_256_000_123_456

func (w *world) reset() {
	if err := w.client.FlushAll(context.Background()).Err(); err != nil {
		w.tb.Fatal(err)
	}
	w.memory = NewMemory(func() time.Time { return time.UnixMicro(w.now) })
	w.memory.keep = true
	w.now = epoch
	w.advance(0)
}

func (w *world) advance(us int64) {
	w.now += us
	if err := w.client.Set(context.Background(), "test:now", w.now, 0).Err(); err != nil {
		w.tb.Fatal(err)
	}
}

// key gives the fields of a bucket in Redis.
func (w *world) fields(k limit.Key) map[string]string {
	m, err := w.client.HGetAll(context.Background(), k.Redis()).Result()
	if err != nil {
		w.tb.Fatal(err)
	}
	return m
}
