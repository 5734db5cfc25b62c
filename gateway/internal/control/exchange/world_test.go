package exchange

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/redis/go-redis/v9"
	noopmetric "go.opentelemetry.io/otel/metric/noop"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"partidor.dev/partidor/gateway/internal/snapshot"
	"partidor.dev/partidor/shared/bucket"
	"partidor.dev/partidor/shared/bucket/redisconn"
	"partidor.dev/partidor/shared/limit"
	"partidor.dev/partidor/shared/rights"
	"partidor.dev/partidor/shared/rights/lease"
	"partidor.dev/partidor/shared/rights/redisstore"
	"partidor.dev/partidor/shared/testenv"
	"partidor.dev/partidor/shared/testenv/natsenv"
)

// site is one region: a real Redis, a NATS server of its own, and some instances.
type site struct {
	name   string
	redis  *testenv.Redis
	client redis.UniversalClient
	store  *redisstore.Store
	takes  *bucket.Redis
	rules  *snapshot.Holder
	nats   *natsenv.Server
	conn   *nats.Conn
	spans  *tracetest.InMemoryExporter
	tracer *sdktrace.TracerProvider
	stop   func() // of the instance that moved started
	guard  *lease.Guard
}

type regionShare struct {
	name string
	base limit.Share
}

func newSites(t *testing.T, rule limit.Rule, shares ...regionShare) []*site {
	t.Helper()
	var sites []*site
	for _, r := range shares {
		s := &site{name: r.name, redis: testenv.StartRedis(t), nats: natsenv.Start(t), spans: tracetest.NewInMemoryExporter()}
		s.conn = s.nats.Conn(t)
		s.connect(t, redisconn.Options{Addrs: []string{s.redis.Addr}, OpTimeout: 5 * time.Second})
		s.tracer = sdktrace.NewTracerProvider(sdktrace.WithSyncer(s.spans))
		s.rules = snapshot.NewHolder(r.name)
		if err := s.rules.Update(func(b *snapshot.Builder) error {
			b.SetDefault(&rule)
			var regions []snapshot.Region
			for _, q := range shares {
				regions = append(regions, snapshot.Region{Name: q.name, Base: q.base, Floor: q.base / 20})
			}
			return b.SetRegions(regions, limit.Revision{Epoch: 1, Number: 1})
		}); err != nil {
			t.Fatal(err)
		}
		sites = append(sites, s)
	}
	return sites
}

// connect makes the site use that Redis.
func (s *site) connect(t *testing.T, o redisconn.Options) {
	t.Helper()
	client, err := redisconn.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	s.client = client
	s.store = redisstore.New(redisstore.Options{Client: client})
	s.takes = bucket.NewRedis(bucket.Options{Client: client, CallTimeout: o.OpTimeout})
	t.Cleanup(s.takes.Close)
}

// start runs one instance of the region until the test ends or stop is called.
func (s *site) start(t *testing.T, instance string, change func(*Options)) (stop func()) {
	t.Helper()
	o := Options{
		WarmUp: time.Millisecond, MarkMoved: s.markMoved, Region: s.name, Instance: instance, Conn: s.conn, Store: s.store, Rules: s.rules,
		Logger: slog.New(slog.DiscardHandler), Tracer: s.tracer.Tracer("test"), Meter: noopmetric.NewMeterProvider().Meter("test"),
	}
	if change != nil {
		change(&o)
	}
	x, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- x.Run(ctx) }()
	var once sync.Once
	stop = func() {
		once.Do(func() {
			cancel()
			if err := <-ended; err != nil {
				t.Error(err)
			}
		})
	}
	t.Cleanup(stop)
	return stop
}

func (s *site) state(t *testing.T, key limit.Key) rights.State {
	t.Helper()
	states, errs := s.store.Read(context.Background(), []limit.Key{key})
	if errs[0] != nil {
		t.Fatal(errs[0])
	}
	return states[0]
}

// take charges the key's bucket and tells whether that was admitted.
func (s *site) take(t *testing.T, key limit.Key, cost int64) bool {
	t.Helper()
	return s.decide(t, key, cost).Outcome == limit.Allowed
}

func (s *site) decide(t *testing.T, key limit.Key, cost int64) limit.Decision {
	t.Helper()
	m := s.rules.Load().Lookup(key.Tenant, key.Route)
	d, err := s.takes.Take(context.Background(), []bucket.Limit{{
		Key: key, Rule: m.Rule, Revision: m.Revision, Base: m.Base, Floor: m.Floor, Moved: m.Moved, Cost: cost,
	}})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// counter counts one key's decisions, as the usage table does.
type counter struct{ admitted, refused atomic.Uint64 }

func (c *counter) count(allowed bool) {
	if allowed {
		c.admitted.Add(1)
	} else {
		c.refused.Add(1)
	}
}

// Totals implements the interface that Heat reads.
func (c *counter) Totals(limit.Key) (admitted, refused uint64, ok bool) {
	return c.admitted.Load(), c.refused.Load(), true
}

// link carries what two regions say to each other, badly: it loses, doubles and delays.
func link(t *testing.T, a, b *site, lose, double float64, delay time.Duration) (cut func()) {
	t.Helper()
	there, back := carry(t, a, b, lose, double, delay), carry(t, b, a, lose, double, delay)
	return func() {
		there()
		back()
	}
}

// carry is one direction of a link.
func carry(t *testing.T, from, to *site, lose, double float64, delay time.Duration) (cut func()) {
	t.Helper()
	rng := rand.New(rand.NewPCG(1, 2))
	sub, err := from.conn.Subscribe("partidor.v1.>", func(m *nats.Msg) {
		parts := strings.Split(m.Subject, ".")
		if len(parts) < 4 || len(parts) == 5 && parts[4] != from.name {
			return
		}
		if own := parts[2] == "renew" && parts[3] == from.name; !own && (parts[2] == "renew" || parts[3] != to.name) {
			return // what regions call is for everybody, all else names the receiver
		}
		copies := 1
		if rng.Float64() < lose {
			copies = 0
		} else if rng.Float64() < double {
			copies = 2
		}
		for range copies {
			wait := time.Duration(rng.Float64() * float64(delay))
			time.AfterFunc(wait, func() {
				_ = to.conn.PublishMsg(&nats.Msg{Subject: m.Subject, Header: m.Header, Data: m.Data})
			})
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	cut = func() { _ = sub.Unsubscribe() }
	t.Cleanup(cut)
	return cut
}

// alive waits until the region's rights are active.
func (s *site) alive(t *testing.T) {
	t.Helper()
	await(t, s.name+" is active", func() bool {
		r, err := s.store.Record(context.Background())
		return err == nil && r.Self > 0 && r.Phase == rights.Active
	})
}

// await polls until the condition holds; the test fails after a minute, which the slowest machine
// must manage.
func await(t *testing.T, what string, holds func() bool) {
	t.Helper()
	deadline := time.NewTimer(time.Minute)
	defer deadline.Stop()
	poll := time.NewTicker(10 * time.Millisecond)
	defer poll.Stop()
	for !holds() {
		select {
		case <-poll.C:
		case <-deadline.C:
			t.Fatalf("never: %s", what)
		}
	}
}

func (s *site) markMoved(keys map[limit.Key]Recorded) {
	_ = s.rules.Update(func(b *snapshot.Builder) error {
		for k, r := range keys {
			b.MarkMoved(k, r.Base)
			b.MarkFloor(k, r.Floor)
		}
		return nil
	})
}
