package life

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"partidor.dev/partidor/shared/bucket"
	"partidor.dev/partidor/shared/bucket/redisconn"
	"partidor.dev/partidor/shared/limit"
	"partidor.dev/partidor/shared/testenv"
)

func init() { redis.SetLogger(silence{}) }

type silence struct{}

func (silence) Printf(context.Context, string, ...any) {}

// gateway is the part of one that watches and decides.
type gateway struct {
	*Watcher
	client redis.UniversalClient
	store  *bucket.Redis

	mu     sync.Mutex
	losses []time.Time
}

func newGateway(t *testing.T, addr string) *gateway {
	t.Helper()
	return newGatewayOf(t, redisconn.Options{Addrs: []string{addr}})
}

func newGatewayOf(t *testing.T, o redisconn.Options) *gateway {
	t.Helper()
	g := new(gateway)
	w, err := New(Options{})
	if err != nil {
		t.Fatal(err)
	}
	g.Watcher = w
	o.Greet, o.PoolSize = w.Greet, 4
	if g.client, err = redisconn.New(o); err != nil {
		t.Fatal(err)
	}
	g.store = bucket.NewRedis(bucket.Options{Client: g.client})
	t.Cleanup(func() {
		g.store.Close()
		_ = g.client.Close()
	})
	w.Tell(func(at time.Time) {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.losses = append(g.losses, at)
		g.store.SetLoss(at)
	})
	return g
}

func (g *gateway) take(t *testing.T, tenant string) limit.Decision {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	var last error
	for ctx.Err() == nil { // a connection that died with the server fails one call
		d, err := g.store.Take(ctx, []bucket.Limit{{
			Key: limit.Key{Tenant: tenant, Route: "items"}, Rule: &limit.Rule{Capacity: 1000, Refill: 10, PeriodSeconds: 1},
			Base: limit.Whole, Cost: 1,
		}})
		if err == nil {
			return d
		}
		last = err
	}
	t.Fatal(last)
	return limit.Decision{}
}

func (g *gateway) known() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.losses)
}

// Case request-path 70: Redis comes back without its data. Buckets hold what has come since, not a burst each; also for
// gateways that start only then.
func TestLostDataRefillsNobody(t *testing.T) {
	r := testenv.StartRedis(t)
	g := newGateway(t, r.Addr)
	if d := g.take(t, "t1"); d.Remaining != 999 || g.known() != 0 {
		t.Fatalf("%d left and %d losses at the first start", d.Remaining, g.known())
	}
	r.Kill()
	r.Restart()
	for _, tenant := range []string{"t1", "t2"} {
		if d := g.take(t, tenant); d.Remaining > 100 {
			t.Errorf("%s: %d left at once after the loss", tenant, d.Remaining)
		}
	}
	if g.known() != 1 {
		t.Errorf("%d losses, want 1", g.known())
	}
	late := newGateway(t, r.Addr)
	if d := late.take(t, "t3"); d.Remaining > 100 || late.known() != 1 {
		t.Errorf("a gateway started later: %d left, %d losses", d.Remaining, late.known())
	}
}

// A newcomer may meet the empty server first, and take it for a first start; who knew it before corrects that.
func TestWhoKnowsBetterCorrects(t *testing.T) {
	r := testenv.StartRedis(t)
	old := newGateway(t, r.Addr)
	old.take(t, "t1")
	r.Kill()
	r.Restart()
	late := newGateway(t, r.Addr)
	if d := late.take(t, "t1"); d.Remaining != 999 {
		t.Fatalf("%d left", d.Remaining)
	}
	if d := old.take(t, "t2"); d.Remaining > 100 || old.known() != 1 {
		t.Errorf("who knew it: %d left, %d losses", d.Remaining, old.known())
	}
	if err := late.look(t.Context(), late.client); !errors.Is(err, errNews) || late.known() != 1 {
		t.Errorf("the newcomer at its next look: %d losses, %v", late.known(), err)
	}
}

func TestWhatIsALoss(t *testing.T) {
	for name, tc := range map[string]struct {
		options []testenv.RedisOption
		happen  func(t *testing.T, r *testenv.Redis)
		losses  int
	}{
		"nothing":      {nil, func(*testing.T, *testenv.Redis) {}, 0},
		"flushed":      {nil, func(t *testing.T, r *testenv.Redis) { r.Client().FlushAll(t.Context()) }, 1},
		"another copy": {[]testenv.RedisOption{testenv.RedisAppendOnly()}, func(_ *testing.T, r *testenv.Redis) { r.Kill(); r.Restart() }, 1},
	} {
		t.Run(name, func(t *testing.T) {
			r := testenv.StartRedis(t, tc.options...)
			g := newGateway(t, r.Addr)
			g.take(t, "t1")
			tc.happen(t, r)
			g.take(t, "t1")
			for range 3 {
				if err := g.look(t.Context(), g.client); err != nil && !errors.Is(err, errNews) {
					t.Fatal(err)
				}
			}
			if g.known() != tc.losses {
				t.Errorf("%d losses, want %d", g.known(), tc.losses)
			}
		})
	}
}

// A user who may not ask who the server is still gets decisions.
func TestWithoutPermission(t *testing.T) {
	r := testenv.StartRedis(t)
	c := r.Client()
	if err := c.Do(t.Context(), "acl", "setuser", "default", "-info").Err(); err != nil {
		t.Fatal(err)
	}
	g := newGateway(t, r.Addr)
	if d := g.take(t, "t1"); d.Outcome != limit.Allowed {
		t.Errorf("%v", d.Outcome)
	}
	if err := g.look(t.Context(), g.client); err == nil {
		t.Error("a look without permission succeeded")
	}
}

// Case request-path 74: memory runs out under allkeys-lru; what is evicted is seen.
func TestEvictionsAreCounted(t *testing.T) {
	r := testenv.StartRedis(t, testenv.RedisConfig("maxmemory", "3mb"), testenv.RedisConfig("maxmemory-policy", "allkeys-lru"))
	g := newGateway(t, r.Addr)
	c, value := r.Client(), strings.Repeat("x", 10_000)
	for i := range 500 {
		if err := c.Set(t.Context(), "filler:"+strconv.Itoa(i), value, 0).Err(); err != nil {
			t.Fatal(err)
		}
	}
	g.measure(t.Context(), g.client)
	got := g.room.Load()
	if got == nil || got.evicted == 0 || !got.evicting || got.most != 3<<20 || got.used < 1<<20 {
		t.Errorf("measured %+v", got)
	}
	if err := c.ConfigSet(t.Context(), "maxmemory-policy", "noeviction").Err(); err != nil {
		t.Fatal(err)
	}
	if g.measure(t.Context(), g.client); g.room.Load().evicting {
		t.Error("noeviction is said to evict")
	}
}
