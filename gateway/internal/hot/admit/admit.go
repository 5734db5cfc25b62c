package admit

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"partidor.dev/partidor/gateway/internal/snapshot"
	"partidor.dev/partidor/shared/bucket"
	"partidor.dev/partidor/shared/fallback"
	"partidor.dev/partidor/shared/limit"
)

// Request is what one HTTP request asks of its tenant's limits.
type Request struct {
	Tenant string
	Route  string
	// Cost in whole tokens; 0 passes without asking any bucket.
	Cost int64
}

// Counter notes what was asked for, for usage reports. Count is called on the request path by many goroutines: it must
// not block, and not allocate for a key it knows. Refused counts offered load; share and tokens of d belong to d.Key,
// which may be another limit of the same request.
type Counter interface {
	Count(key limit.Key, cost int64, allowed bool, d limit.Decision)
}

// Options are what an Admitter is made of. Rules and Store are needed, all else has a default.
type Options struct {
	Rules *snapshot.Holder
	Store bucket.Store
	// Counter of usage; nil counts nothing.
	Counter Counter
	// Deadline of one decision of Store. Default 5 ms. Afterwards the fallback decides.
	Deadline time.Duration
	// Instances is the number of live instances in this region, this one included, from heartbeats; called on the request
	// path, so it should be one atomic load. Default: always 1.
	Instances func() int
	// Fenced tells that this region may use no more than its floor. Default: never.
	Fenced func() bool
	// Strict lets the fallback use the floor's slice only.
	Strict bool
	// MaxBuckets bounds the keys that the fallback remembers. Default fallback.DefaultMaxBuckets.
	MaxBuckets int
	// Breaker says when Store is no longer asked. Slow defaults to Deadline; OnChange is ignored.
	Breaker fallback.BreakerOptions
	// Prefetch bounds the tokens taken ahead for rules that allow it.
	Prefetch Prefetch
	// DeniedCache is how long a refusal may be answered from memory: default and at most 100 ms, negative for never.
	DeniedCache time.Duration
	// MaxHot bounds the keys with a remembered refusal or prefetched tokens. Default 16,384.
	MaxHot int

	Logger *slog.Logger
	Tracer trace.Tracer
	Meter  metric.Meter
}

// Prefetch bounds the tokens that an instance holds ahead of requests. Together all instances hold at most 5 % of a
// slice's capacity.
type Prefetch struct {
	Disabled bool
	// MaxTokens per key. Default 50.
	MaxTokens int64
	// Horizon of this instance's own rate that one fetch covers. Default 100 ms.
	Horizon time.Duration
}

// Admitter decides requests. It is safe for many goroutines; Run is its background part.
type Admitter struct {
	opts    Options
	store   bucket.Store
	breaker *fallback.Breaker
	local   *fallback.Local
	calls   sync.Pool
}

// New is an Admitter that starts at now. Without Run it works, but returns no unused tokens and settles only the debts of
// keys that are asked for again.
func New(now time.Time, o Options) (*Admitter, error) {
	if o.Rules == nil || o.Store == nil {
		return nil, errors.New("admit: rules and store are needed")
	}
	o = o.withDefaults()
	a := &Admitter{opts: o, store: o.Store, local: fallback.NewLocal(now, o.MaxBuckets)}
	a.calls.New = func() any { return new(call) }
	o.Breaker.OnChange = a.changed
	a.breaker = fallback.NewBreaker(o.Breaker)
	return a, nil
}

func (o Options) withDefaults() Options {
	if o.Deadline <= 0 {
		o.Deadline = 5 * time.Millisecond
	}
	if o.Breaker.Slow <= 0 {
		o.Breaker.Slow = o.Deadline
	}
	if o.Instances == nil {
		o.Instances = func() int { return 1 }
	}
	if o.Fenced == nil {
		o.Fenced = func() bool { return false }
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o
}

// Admit decides req at now. It never fails: where no bucket can be asked within the deadline, the fallback decides. ctx
// carries the trace; that the client has gone neither stops a decision that is under way nor counts against Redis.
func (a *Admitter) Admit(ctx context.Context, now time.Time, req Request) limit.Decision {
	c := a.calls.Get().(*call)
	c.limits = c.room[:0]
	snap := a.opts.Rules.Load()
	d, decided := c.plan(snap, req)
	if !decided {
		d = a.decide(ctx, now, snap, c)
	}
	if c.keep {
		a.calls.Put(c)
	}
	return d
}

// Degraded tells that Redis is not being asked, or only on trial.
func (a *Admitter) Degraded() bool { return a.breaker.State() != fallback.Closed }

// Credited drops what is remembered against keys that have just been given tokens or share, so that they are asked for
// anew at once.
func (a *Admitter) Credited(keys ...limit.Key) {}

// Run settles debts and returns unused tokens until ctx ends.
func (a *Admitter) Run(ctx context.Context) error {
	<-ctx.Done()
	return nil
}

func (a *Admitter) changed(now time.Time, from, to fallback.State) {}

type call struct {
	room   [2]bucket.Limit
	limits []bucket.Limit
	keep   bool
}

func (c *call) plan(snap *snapshot.Snapshot, req Request) (limit.Decision, bool) {
	m := snap.Lookup(req.Tenant, req.Route)
	c.limits = append(c.limits, bucket.Limit{Key: limit.Key{Tenant: req.Tenant, Route: req.Route}, Rule: m.Rule, Revision: m.Revision, Base: m.Base, Moved: m.Moved, Cost: req.Cost})
	return limit.Decision{}, false
}

func (a *Admitter) decide(ctx context.Context, now time.Time, snap *snapshot.Snapshot, c *call) limit.Decision {
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), a.opts.Deadline)
	defer cancel()
	d, err := a.store.Take(bounded, c.limits)
	if err != nil {
		return a.local.Take(now, c.limits, fallback.Terms{Instances: a.opts.Instances()})
	}
	return d
}
