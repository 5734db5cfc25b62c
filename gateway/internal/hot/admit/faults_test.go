package admit

import (
	"context"
	"fmt"
	"net"
	"runtime"
	"sync"
	"testing"
	"time"

	"partidor.dev/partidor/shared/bucket/redisconn"
	"partidor.dev/partidor/shared/limit"
	"partidor.dev/partidor/shared/testenv"
)

// Every fault here has the same documented outcome: requests are answered within the decision deadline, by the local limiter
// while Redis is away; one log line says so and one that it is over; and Redis is used again by itself.

func TestRedisKilledAndRestarted(t *testing.T) {
	r := testenv.StartRedis(t)
	g := newGateway(t, r.Addr, 1000, 500)
	g.shows(t, "t1", 200*time.Millisecond, 200, func(m *met) error {
		if m.fallback.Load() > m.all()/10 {
			return fmt.Errorf("%d of %d by the fallback while redis is well", m.fallback.Load(), m.all())
		}
		return nil
	})
	g.log.forget()
	r.Kill()
	g.until(t, "degraded", 5*time.Second, g.Degraded)
	g.shows(t, "t1", 500*time.Millisecond, 500, func(away *met) error {
		if away.admitted.Load() == 0 || away.redis.Load() > 0 {
			t.Errorf("%d admitted, %d by redis, while it is away", away.admitted.Load(), away.redis.Load())
		}
		return within(0.95, patience)(away)
	})
	r.Restart()
	g.until(t, "recovered", 15*time.Second, func() bool { return !g.Degraded() })
	g.wantChanges(t, 2)
}

// Case limits 68: CLIENT PAUSE. Nobody waits longer than the deadline and the breaker opens.
func TestClientPause(t *testing.T) {
	r := testenv.StartRedis(t)
	g := newGateway(t, r.Addr, 1000, 500)
	do(t, client(t, r.Addr), "client", "pause", "3000", "all")
	g.shows(t, "t1", time.Second, 500, func(m *met) error {
		if m.admitted.Load() == 0 {
			t.Error("nothing was admitted")
		}
		return within(0.95, patience+100*time.Millisecond)(m)
	})
	g.until(t, "recovered", 20*time.Second, func() bool { return !g.Degraded() })
	g.wantChanges(t, 2)
}

// Case limits 65: the node becomes a replica (READONLY), and a master again.
func TestReplicaOf(t *testing.T) {
	r, other := testenv.StartRedis(t), testenv.StartRedis(t)
	g := newGateway(t, r.Addr, 1000, 500)
	host, port, err := net.SplitHostPort(other.Addr)
	if err != nil {
		t.Fatal(err)
	}
	c := client(t, r.Addr)
	do(t, c, "replicaof", host, port)
	g.until(t, "degraded", 5*time.Second, g.Degraded)
	m := new(met)
	g.load(t, "t1", 300*time.Millisecond, 300, m)
	if m.admitted.Load() == 0 {
		t.Error("nothing was admitted")
	}
	do(t, c, "replicaof", "no", "one")
	g.until(t, "recovered", 15*time.Second, func() bool { return !g.Degraded() })
	g.wantChanges(t, 2)
}

// Case request-path 64: a server that accepts and never answers. Requests wait at most the deadline until the breaker opens,
// then not at all.
func TestBlackHole(t *testing.T) {
	hole, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = hole.Close() })
	g := newGateway(t, hole.Addr().String(), 1000, 500)
	g.shows(t, "t1", 500*time.Millisecond, 300, within(0.95, patience+100*time.Millisecond))
	if !g.Degraded() {
		t.Fatal("not degraded")
	}
	g.shows(t, "t1", 500*time.Millisecond, 1000, within(0.75, patience/2))
}

// Case request-path 65 and 68: 200 ms of latency at thousands of requests a second. Slow counts as away; goroutines and
// connections stay bounded.
func TestSlowNode(t *testing.T) {
	r := testenv.StartRedis(t)
	slow := newLink(t, r.Addr)
	g := newGateway(t, slow.addr(), 100_000, 50_000)
	before := runtime.NumGoroutine()
	slow.set(func(l *link) { l.delay = 200 * time.Millisecond })
	most := 0
	done := make(chan struct{})
	go func() {
		defer close(done)
		g.shows(t, "t1", 2*time.Second, 3000, within(0.9, patience+100*time.Millisecond))
	}()
	for tick := time.NewTicker(20 * time.Millisecond); ; {
		select {
		case <-done:
		case <-tick.C:
			most = max(most, runtime.NumGoroutine())
			continue
		}
		tick.Stop()
		break
	}
	if !g.Degraded() {
		t.Error("not degraded")
	}
	// Those waiting for their deadline are 3,000/s × 50 ms; each connection is a pair of pumps in this test's own link.
	if most-before > 2000 {
		t.Errorf("%d goroutines, %d before", most, before)
	}
	if slow.most > 16 {
		t.Errorf("%d connections at once, the pool has 16", slow.most)
	}
	slow.set(func(l *link) { l.delay = 0 })
	g.until(t, "recovered", 20*time.Second, func() bool { return !g.Degraded() })
}

// Case limits 67: the link to Redis is cut and restored again and again at ten times the limit. What is admitted stays within
// the limit and one burst: the fallback starts from the level last seen, and what it admits is settled.
func TestToggling(t *testing.T) {
	r := testenv.StartRedis(t)
	path := newLink(t, r.Addr)
	const capacity, rate = 100, 100
	g := newGateway(t, path.addr(), capacity, rate, func(o *Options) { o.Breaker.Delay = 50 * time.Millisecond })
	ctx, cancel := context.WithCancel(t.Context())
	ran := make(chan struct{})
	go func() {
		defer close(ran)
		_ = g.Run(ctx)
	}()
	m := new(met)
	began := time.Now()
	for range 6 {
		g.load(t, "t1", 400*time.Millisecond, 1000, m)
		path.set(func(l *link) { l.cut = true })
		g.load(t, "t1", 600*time.Millisecond, 1000, m)
		path.set(func(l *link) { l.cut = false })
	}
	// What was being settled when the link was cut may have been lost on the way; the gateway counts it.
	most := 2*capacity + rate*time.Since(began).Seconds() + float64(g.metrics.unknown.Load())
	if n := m.admitted.Load(); float64(n) > most || float64(n) < most/2 {
		t.Errorf("%d admitted in %v, want at most %.0f", n, time.Since(began), most)
	}
	if m.fallback.Load() == 0 || m.redis.Load() == 0 {
		t.Errorf("%d by the fallback, %d by redis: the test shows nothing", m.fallback.Load(), m.redis.Load())
	}
	cancel()
	<-ran
}

// Case limits 86: 1,000 clients that hang up after 1 ms. The breaker stays closed, and a charge is all or nothing.
func TestClientsThatHangUp(t *testing.T) {
	r := testenv.StartRedis(t)
	path := newLink(t, r.Addr)
	const capacity = 5000
	g := newGateway(t, path.addr(), capacity, 1, unhurried(t, path.addr()))
	path.set(func(l *link) { l.delay = 5 * time.Millisecond })
	m := new(met)
	var wg sync.WaitGroup
	for range 1000 {
		wg.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
			defer cancel()
			at := time.Now()
			m.note(g.Admit(ctx, at, Request{Tenant: "t1", Route: "items", Cost: 2}), time.Since(at))
		})
	}
	wg.Wait()
	if g.Degraded() || m.fallback.Load() > 0 {
		t.Errorf("degraded %v, %d by the fallback", g.Degraded(), m.fallback.Load())
	}
	d := g.Admit(t.Context(), time.Now(), Request{Tenant: "t1", Route: "items", Cost: 1})
	if want := capacity - 2*m.admitted.Load() - 1; d.Remaining < want || d.Remaining > want+5 {
		t.Errorf("%d left after %d admitted, want %d and the refill of a few seconds", d.Remaining, m.admitted.Load(), want)
	}
}

// Case limits 64 and request-path 67: Redis executes, its replies are dropped. Nothing is asked twice: at most one token is
// lost per decision that found no answer.
func TestLostReplies(t *testing.T) {
	r := testenv.StartRedis(t)
	path := newLink(t, r.Addr)
	const capacity = 1000
	g := newGateway(t, path.addr(), capacity, 1)
	if d := admitAs(t, g, "t1"); d.Source != limit.SourceRedis {
		t.Fatalf("by %v", d.Source)
	}
	path.set(func(l *link) { l.mute = true })
	const lost = 5
	for range lost {
		if d := admitAs(t, g, "t1"); d.Source != limit.SourceFallback {
			t.Fatalf("by %v", d.Source)
		}
	}
	// Seen from elsewhere, so that no debt is settled: one was taken before, and at most one per lost reply.
	other := newGateway(t, r.Addr, capacity, 1)
	if d := admitAs(t, other, "t1"); d.Remaining < capacity-1-lost-1 || d.Remaining > capacity-1 {
		t.Errorf("%d left of %d", d.Remaining, capacity)
	}
}

// Case request-path 61: the script cache is emptied under load. No request notices.
func TestScriptFlushUnderLoad(t *testing.T) {
	r := testenv.StartRedis(t)
	g := newGateway(t, r.Addr, 1_000_000, 1_000_000, unhurried(t, r.Addr))
	c := client(t, r.Addr)
	m := new(met)
	done := make(chan struct{})
	go func() {
		defer close(done)
		g.load(t, "t1", time.Second, 1000, m)
	}()
	for range 20 {
		do(t, c, "script", "flush")
		select {
		case <-done:
		case <-time.After(40 * time.Millisecond):
		}
	}
	<-done
	if m.fallback.Load() > 0 || m.admitted.Load() != m.all() {
		t.Errorf("%d by the fallback, %d of %d admitted", m.fallback.Load(), m.admitted.Load(), m.all())
	}
}

// Case request-path 62: a user who may not use SCRIPT works as any other; one who may run no scripts at all is an outage,
// for nothing can be decided: local limits, loudly.
func TestUsersWithoutScripts(t *testing.T) {
	r := testenv.StartRedis(t)
	c := client(t, r.Addr)
	do(t, c, "acl", "setuser", "noscript", "on", ">pw", "~*", "+@all", "-script")
	do(t, c, "acl", "setuser", "noeval", "on", ">pw", "~*", "+@all", "-@scripting")
	for user, away := range map[string]bool{"noscript": false, "noeval": true} {
		t.Run(user, func(t *testing.T) {
			g := newGateway(t, r.Addr, 1000, 500, func(o *Options) {
				o.Store = storeAt(t, r.Addr, func(o *redisconn.Options) { o.Username, o.Password = user, "pw" })
			})
			m := new(met)
			g.load(t, user, 300*time.Millisecond, 300, m)
			if (m.redis.Load() == 0) != away || g.Degraded() != away {
				t.Errorf("%d by redis, %d by the fallback, degraded %v", m.redis.Load(), m.fallback.Load(), g.Degraded())
			}
			if m.admitted.Load() == 0 {
				t.Error("nothing was admitted")
			}
		})
	}
}

func admitAs(t testing.TB, g *gateway, tenant string) limit.Decision {
	t.Helper()
	return g.Admit(t.Context(), time.Now(), Request{Tenant: tenant, Route: "items", Cost: 1})
}
