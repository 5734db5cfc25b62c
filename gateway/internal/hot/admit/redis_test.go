package admit

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"partidor.dev/partidor/shared/bucket"
	"partidor.dev/partidor/shared/bucket/redisconn"
	"partidor.dev/partidor/shared/fallback"
	"partidor.dev/partidor/shared/limit"
)

// The faults here are many: go-redis would write a line for each failed dial.
func init() { redis.SetLogger(silence{}) }

type silence struct{}

func (silence) Printf(context.Context, string, ...any) {}

// patience is the decision deadline of the tests on real servers: ten times the default, for machines that run other tests
// beside them.
const patience = 50 * time.Millisecond

// storeAt is the store a gateway uses, at addr.
func storeAt(t testing.TB, addr string, change ...func(*redisconn.Options)) *bucket.Redis {
	t.Helper()
	o := redisconn.Options{Addrs: []string{addr}}
	for _, c := range change {
		c(&o)
	}
	client, err := redisconn.New(o)
	if err != nil {
		t.Fatal(err)
	}
	s := bucket.NewRedis(bucket.Options{Client: client, CallTimeout: 2 * o.OpTimeout})
	t.Cleanup(func() {
		s.Close()
		_ = client.Close()
	})
	return s
}

// unhurried is for tests in which nothing is wrong with Redis: however busy the machine, nothing times out.
func unhurried(t testing.TB, addr string) func(*Options) {
	return func(o *Options) {
		o.Deadline, o.Breaker.Slow = 10*time.Second, 10*time.Second
		o.Store = storeAt(t, addr, func(o *redisconn.Options) { o.DialTimeout, o.OpTimeout = 10*time.Second, 10*time.Second })
	}
}

// journal is a log that tests read while it is written.
type journal struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (j *journal) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.b.Write(p)
}

func (j *journal) forget() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.b.Reset()
}

func (j *journal) lines() []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return strings.Split(strings.TrimSpace(j.b.String()), "\n")
}

// gateway is an Admitter on a real Redis, and what its requests met.
type gateway struct {
	*Admitter
	log *journal
}

func newGateway(t testing.TB, addr string, capacity, refill int64, change ...func(*Options)) *gateway {
	t.Helper()
	g := &gateway{log: new(journal)}
	o := Options{
		Rules: rules(t, set("*", "items", capacity, refill)), Store: storeAt(t, addr), Deadline: patience,
		Logger:  slog.New(slog.NewTextHandler(g.log, nil)),
		Breaker: fallback.BreakerOptions{Delay: 100 * time.Millisecond, MaxDelay: 400 * time.Millisecond},
	}
	for _, c := range change {
		c(&o)
	}
	g.Admitter = newAdmitter(t, o)
	warm(t, o.Store)
	return g
}

// warm makes the first connection, as the gateway does before it serves.
func warm(t testing.TB, s bucket.Store) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	_, _ = s.Take(ctx, []bucket.Limit{{Key: limit.Key{Tenant: "warm", Route: "up"}, Rule: &limit.DefaultRule, Base: limit.Whole}})
}

// met is what a stretch of load met.
type met struct {
	admitted, refused, unable atomic.Int64
	fallback, redis           atomic.Int64
	mu                        sync.Mutex
	took                      []time.Duration
}

func (m *met) note(d limit.Decision, took time.Duration) {
	switch d.Outcome {
	case limit.Allowed:
		m.admitted.Add(1)
	case limit.Refused:
		m.refused.Add(1)
	default:
		m.unable.Add(1)
	}
	if d.Source == limit.SourceFallback {
		m.fallback.Add(1)
	} else {
		m.redis.Add(1)
	}
	m.mu.Lock()
	m.took = append(m.took, took)
	m.mu.Unlock()
}

// quantile of the times decisions took.
func (m *met) quantile(q float64) time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	slices.Sort(m.took)
	return m.took[int(q*float64(len(m.took)-1))]
}

func (m *met) all() int64 { return m.admitted.Load() + m.refused.Load() + m.unable.Load() }

// load sends requests of tenant for so long, so many a second, each in its own goroutine.
func (g *gateway) load(t testing.TB, tenant string, d time.Duration, perSecond int, m *met) {
	t.Helper()
	var wg sync.WaitGroup
	defer wg.Wait()
	const step = 5 * time.Millisecond
	tick := time.NewTicker(step)
	defer tick.Stop()
	sent := 0
	for began := time.Now(); time.Since(began) < d; <-tick.C {
		for due := int(time.Since(began).Seconds() * float64(perSecond)); sent < due; sent++ {
			wg.Go(func() {
				at := time.Now()
				m.note(g.Admit(context.Background(), at, Request{Tenant: tenant, Route: "items", Cost: 1}), time.Since(at))
			})
		}
	}
}

// shows repeats a stretch of load until it meets what is wanted. A stretch in which the machine did something else says nothing
// about the gateway; what no stretch shows is a fault.
func (g *gateway) shows(t testing.TB, tenant string, d time.Duration, perSecond int, want func(*met) error) {
	t.Helper()
	var fault error
	for range 20 {
		m := new(met)
		g.load(t, tenant, d, perSecond, m)
		if fault = want(m); fault == nil {
			return
		}
	}
	t.Errorf("in each of 20 stretches, at last: %v", fault)
}

// within is what shows wants when that part of the decisions took so long at most.
func within(quantile float64, most time.Duration) func(*met) error {
	return func(m *met) error {
		if took := m.quantile(quantile); took > most {
			return fmt.Errorf("%g of the decisions took up to %v, want at most %v", quantile, took, most)
		}
		return nil
	}
}

// until waits for something that load brings about.
func (g *gateway) until(t testing.TB, what string, within time.Duration, reached func() bool) {
	t.Helper()
	m := new(met)
	for began := time.Now(); !reached(); {
		if time.Since(began) > within {
			t.Fatalf("%s: not within %v", what, within)
		}
		g.load(t, "prober", 50*time.Millisecond, 400, m)
	}
}

func (g *gateway) wantChanges(t testing.TB, n int) {
	t.Helper()
	if lines := g.log.lines(); len(lines) != n {
		t.Errorf("%d log lines, want one for each of %d changes:\n%s", len(lines), n, strings.Join(lines, "\n"))
	}
}

func client(t testing.TB, addr string) *redis.Client {
	c := redis.NewClient(&redis.Options{Addr: addr, MaxRetries: -1})
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func do(t testing.TB, c *redis.Client, args ...any) {
	t.Helper()
	if err := c.Do(t.Context(), args...).Err(); err != nil {
		t.Fatalf("%v: %v", args, err)
	}
}
