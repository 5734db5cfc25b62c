package bucket

import (
	"context"
	"errors"
	"io"
	"net"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"partidor.dev/partidor/shared/bucket/redisconn"
	"partidor.dev/partidor/shared/limit"
	"partidor.dev/partidor/shared/testenv"
)

// What Redis can do to a store, and what becomes of it.

func startStore(tb testing.TB, opts ...testenv.RedisOption) (*testenv.Redis, *Redis) {
	server := testenv.StartRedis(tb, opts...)
	s := NewRedis(Options{Client: connect(tb, server.Addr), CallTimeout: 20 * time.Second})
	tb.Cleanup(s.Close)
	return server, s
}

// SCRIPT FLUSH under load: the script's text is sent once more, and no request notices. (request-path F61)
func TestScriptFlushUnderLoad(t *testing.T) {
	server, s := startStore(t)
	rule := &limit.Rule{Capacity: 1000, Refill: 1, PeriodSeconds: 3600}
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		c := server.Client()
		for {
			select {
			case <-done:
				return
			default:
				c.ScriptFlush(context.Background())
			}
		}
	})
	got := flood(t, []*Redis{s}, 16, 1500, one(rule, 1))
	close(done)
	wg.Wait()
	if got != 1000 {
		t.Errorf("admitted %d, want exactly 1000", got)
	}
}

// An ACL user without SCRIPT commands works through EVAL. (request-path F62)
func TestUserWithoutScriptCommands(t *testing.T) {
	server := testenv.StartRedis(t)
	ctx := context.Background()
	if err := server.Client().Do(ctx, "ACL", "SETUSER", "limiter", "on", ">pw", "~rl:*", "+@all", "-script", "-@dangerous", "+info").Err(); err != nil {
		t.Fatal(err)
	}
	client, err := redisconn.New(redisconn.Options{Addrs: []string{server.Addr}, Username: "limiter", Password: "pw"})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = client.Close() }()
	s := NewRedis(Options{Client: client})
	defer s.Close()
	if d := mustTake(t, s, one(&limit.DefaultRule, 1)); d.Remaining != 19 {
		t.Errorf("remaining %d", d.Remaining)
	}
	if err := client.ScriptFlush(ctx).Err(); !redis.HasErrorPrefix(err, "NOPERM") {
		t.Errorf("SCRIPT should be forbidden here, got %v", err)
	}
}

// A bucket that is a string, or holds words, NaN or infinity, is rebuilt as a missing one, and said to be broken once. (limits G70)
func TestUnreadableBucketIsRebuilt(t *testing.T) {
	for name, damage := range map[string]func(redis.Cmdable) error{
		"string": func(c redis.Cmdable) error { return c.Set(context.Background(), orders.Redis(), "x", 0).Err() },
		"word": func(c redis.Cmdable) error {
			return c.HSet(context.Background(), orders.Redis(), "tokens", "many").Err()
		},
		"nan": func(c redis.Cmdable) error {
			return c.HSet(context.Background(), orders.Redis(), "tokens", "nan").Err()
		},
		"inf":        func(c redis.Cmdable) error { return c.HSet(context.Background(), orders.Redis(), "ts", "inf").Err() },
		"ts missing": func(c redis.Cmdable) error { return c.HDel(context.Background(), orders.Redis(), "ts").Err() },
		"log is hash": func(c redis.Cmdable) error {
			c.Del(context.Background(), orders.Redis()+":log")
			return c.HSet(context.Background(), orders.Redis()+":log", "a", "b").Err()
		},
	} {
		t.Run(name, func(t *testing.T) {
			server := testenv.StartRedis(t)
			var found []Finding
			s := NewRedis(Options{Client: connect(t, server.Addr), Found: func(f Finding) { found = append(found, f) }})
			defer s.Close()
			rule := &limit.Rule{Capacity: 10, Refill: 1, PeriodSeconds: 3600}
			if name == "log is hash" {
				rule = &limit.Rule{Capacity: 10, PeriodSeconds: 1, Algorithm: limit.SlidingWindowLog, WindowSeconds: 3600}
			}
			if name != "string" {
				mustTake(t, s, one(rule, 1))
			}
			if err := damage(server.Client()); err != nil {
				t.Fatal(err)
			}
			for want := int64(9); want > 6; want-- {
				if d := mustTake(t, s, one(rule, 1)); d.Outcome != limit.Allowed || d.Remaining != want {
					t.Fatalf("%v, remaining %d, want %d", d.Outcome, d.Remaining, want)
				}
			}
			if len(found) != 1 || !found[0].Broken || found[0].Key != orders {
				t.Errorf("findings %+v, want one", found)
			}
		})
	}
}

// Words in rev or rule alone cost no tokens: the level is readable, the caller's rule is taken.
func TestUnreadableRuleKeepsTokens(t *testing.T) {
	server, s := startStore(t)
	rule := &limit.Rule{Capacity: 10, Refill: 1, PeriodSeconds: 3600}
	mustTake(t, s, one(rule, 4))
	for _, field := range []string{"rev", "rule"} {
		if err := server.Client().HSet(context.Background(), orders.Redis(), field, "?").Err(); err != nil {
			t.Fatal(err)
		}
		mustTake(t, s, one(rule, 1))
	}
	if d := mustTake(t, s, one(rule, 1)); d.Remaining != 3 {
		t.Errorf("remaining %d, want 3", d.Remaining)
	}
}

// The rights of a key known to have moved are missing: that is data loss, the floor counts, from nothing.
func TestLostRightsMeanTheFloor(t *testing.T) {
	w := newWorld(t)
	w.reset()
	rule := &limit.Rule{Capacity: 100, Refill: 100, PeriodSeconds: 1}
	l := one(rule, 1)
	l[0].Moved, l[0].Floor = true, 50_000
	var found []Finding
	w.redis.opts.Found = func(f Finding) { found = append(found, f) }
	if d := mustTake(t, w.redis, l); d.Outcome != limit.Refused || d.Share != 50_000 {
		t.Errorf("lost rights: %v under %d", d.Outcome, d.Share)
	}
	w.advance(10_000_000)
	n := 0
	for mustTake(t, w.redis, l).Outcome == limit.Allowed {
		n++
	}
	if n != 5 {
		t.Errorf("admitted %d, the floor's capacity is 5", n)
	}
	if len(found) == 0 || !found[0].Lost {
		t.Errorf("findings %+v", found)
	}
}

// A bucket missing soon after a data loss holds what has come in since; one that takes longer to fill than the horizon starts full.
// (request-path F70)
func TestMissingBucketAfterDataLoss(t *testing.T) {
	w := newWorld(t)
	w.reset()
	w.redis.SetLoss(time.UnixMicro(w.now - 2_000_000))
	if d := mustTake(t, w.redis, one(&limit.Rule{Capacity: 100, Refill: 10, PeriodSeconds: 1}, 1)); d.Remaining < 18 || d.Remaining > 19 {
		t.Errorf("2 s after the loss, remaining %d, want 19", d.Remaining)
	}
	w.reset()
	if d := mustTake(t, w.redis, one(&limit.Rule{Capacity: 100, Refill: 1, PeriodSeconds: 60}, 1)); d.Remaining != 99 {
		t.Errorf("beyond the horizon, remaining %d, want 99", d.Remaining)
	}
	w.reset()
	w.redis.SetLoss(time.UnixMicro(w.now - 60_000_000))
	if d := mustTake(t, w.redis, one(&limit.Rule{Capacity: 100, Refill: 10, PeriodSeconds: 1}, 1)); d.Remaining != 99 {
		t.Errorf("a minute after the loss, remaining %d, want 99", d.Remaining)
	}
}

// A fenced region uses no more than its floor, moved or not.
func TestFencedRegionUsesItsFloor(t *testing.T) {
	w := newWorld(t)
	w.reset()
	l := one(&limit.Rule{Capacity: 100, Refill: 1, PeriodSeconds: 3600}, 1)
	l[0].Floor = 50_000
	w.redis.SetFenced(func() bool { return true })
	n := 0
	for mustTake(t, w.redis, l).Outcome == limit.Allowed {
		n++
	}
	if n != 5 {
		t.Errorf("admitted %d, the floor's capacity is 5", n)
	}
}

// Memory used up, a replica, a server that is loading: an error, nothing charged, and the next call is served when it is over.
// (limits G65)
func TestServerThatRefusesWrites(t *testing.T) {
	server, s := startStore(t)
	ctx, c := context.Background(), server.Client()
	limits := one(&limit.Rule{Capacity: 10, Refill: 1, PeriodSeconds: 3600}, 1)
	mustTake(t, s, limits)
	for _, f := range []struct{ prefix, refuse, restore string }{
		{"OOM", "CONFIG SET maxmemory 1", "CONFIG SET maxmemory 0"},
		{"READONLY", "REPLICAOF 127.0.0.1 1", "REPLICAOF NO ONE"},
	} {
		if err := c.Do(ctx, words(f.refuse)...).Err(); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Take(ctx, limits); err == nil || !strings.Contains(err.Error(), f.prefix) {
			t.Errorf("got %v, want %s", err, f.prefix)
		}
		if err := c.Do(ctx, words(f.restore)...).Err(); err != nil {
			t.Fatal(err)
		}
	}
	if d := mustTake(t, s, limits); d.Remaining != 8 {
		t.Errorf("remaining %d, want 8", d.Remaining)
	}
}

func words(s string) (args []any) {
	for _, w := range strings.Fields(s) {
		args = append(args, w)
	}
	return args
}

// lossy is a way to Redis that loses replies while told to.
type lossy struct {
	net.Listener
	lose atomic.Bool
	wg   sync.WaitGroup
}

func newLossy(tb testing.TB, target string) *lossy {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	p := &lossy{Listener: l}
	p.wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			p.wg.Go(func() { p.carry(c, target) })
		}
	})
	tb.Cleanup(func() { _ = l.Close() })
	return p
}

func (p *lossy) carry(c net.Conn, target string) {
	defer func() { _ = c.Close() }()
	s, err := net.Dial("tcp", target)
	if err != nil {
		return
	}
	defer func() { _ = s.Close() }()
	go func() { _, _ = io.Copy(s, c) }()
	buf := make([]byte, 64<<10)
	for {
		n, err := s.Read(buf)
		if err != nil {
			return
		}
		if p.lose.Load() {
			return // the connection breaks with the reply on it
		}
		if _, err := c.Write(buf[:n]); err != nil {
			return
		}
	}
}

// The reply is lost after Redis has executed the script: an error, charged once, never sent again. (limits G64; request-path F67)
func TestLostReplyIsNotRepeated(t *testing.T) {
	server := testenv.StartRedis(t)
	way := newLossy(t, server.Addr)
	s := NewRedis(Options{Client: connect(t, way.Addr().String())})
	defer s.Close()
	limits := one(&limit.Rule{Capacity: 10, Refill: 1, PeriodSeconds: 3600}, 1)
	mustTake(t, s, limits)
	way.lose.Store(true)
	if _, err := s.Take(context.Background(), limits); err == nil {
		t.Fatal("a lost reply is an error")
	}
	way.lose.Store(false)
	if d := mustTake(t, s, limits); d.Remaining != 7 {
		t.Errorf("remaining %d, want 7: three takes, one of them unanswered", d.Remaining)
	}
}

// A slow Redis and 5,000 requests: goroutines and connections stay bounded, callers leave at their deadline. (request-path F65, F68)
func TestSlowRedisStaysBounded(t *testing.T) {
	server := testenv.StartRedis(t)
	client := connect(t, server.Addr)
	s := NewRedis(Options{Client: client, Queue: 256, CallTimeout: 20 * time.Second})
	mustTake(t, s, one(&limit.DefaultRule, 1))
	server.Pause()
	before := runtime.NumGoroutine()
	var busy, late atomic.Int64
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(func() {
			for range 10 {
				ctx, cancel := context.WithTimeout(context.Background(), 5*time.Millisecond)
				_, err := s.Take(ctx, one(&limit.DefaultRule, 1))
				cancel()
				switch {
				case errors.Is(err, ErrBusy):
					busy.Add(1)
				case errors.Is(err, context.DeadlineExceeded):
					late.Add(1)
				default:
					t.Errorf("got %v", err)
				}
			}
		})
	}
	wg.Wait()
	if n := runtime.NumGoroutine() - before; n > 50 {
		t.Errorf("%d goroutines more than before", n)
	}
	if total := client.PoolStats().TotalConns; total > 16 {
		t.Errorf("%d connections", total)
	}
	server.Resume()
	s.Close()
	if _, err := s.Take(context.Background(), one(&limit.DefaultRule, 1)); !errors.Is(err, ErrClosed) {
		t.Errorf("closed store: %v", err)
	}
	t.Logf("%d left at their deadline, %d found the queue full", late.Load(), busy.Load())
}

// Every key of a request lies in one slot, odd names included, and distinct keys stay distinct. (limits H80; request-path A10, F71)
func TestKeysOfATenantShareASlot(t *testing.T) {
	seen := map[string]limit.Key{}
	for _, tenant := range []string{"a", "a:b", "{a}", "a}b{c", "%7b", "ä"} {
		for _, route := range []string{"c", "b:c", "{x}", "@tenant", "}"} {
			k := limit.Key{Tenant: tenant, Route: route}
			if other, ok := seen[k.Redis()]; ok {
				t.Errorf("%v and %v are one bucket", k, other)
			}
			seen[k.Redis()] = k
			if keySlot(k.Redis()) != keySlot(limit.Key{Tenant: tenant, Route: "z"}.Redis()) || keySlot(k.Redis()) != keySlot(k.Redis()+":log") {
				t.Errorf("%v leaves its tenant's slot", k)
			}
		}
	}
}
