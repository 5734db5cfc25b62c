package admit

import (
	"context"
	"errors"
	"sync"
	"time"

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
// not block, and not allocate for a key it knows. It is called once for every enforced limit of a request; d speaks of
// d.Key, which may be another of them. A request that is too large for its limit is told as well.
type Counter interface {
	Count(key limit.Key, cost int64, allowed bool, d limit.Decision)
}

// Admitter decides requests. It is safe for many goroutines; Run is its background part.
type Admitter struct {
	rules   *snapshot.Holder
	store   bucket.Store
	counter Counter
	nodes   *nodes
	local   *fallback.Local
	memory  *memory
	metrics *metrics
	opts    Options
	start   time.Time
	calls   sync.Pool
}

// New is an Admitter that starts at now. Without Run it decides as it should, but returns no unused tokens and settles only
// the debts of keys that are asked for again.
func New(now time.Time, o Options) (*Admitter, error) {
	if o.Rules == nil || o.Store == nil {
		return nil, errors.New("admit: rules and store are needed")
	}
	o = o.withDefaults()
	a := &Admitter{
		rules: o.Rules, store: o.Store, counter: o.Counter, opts: o, start: now,
		local:  fallback.NewLocal(now, o.MaxBuckets),
		memory: newMemory(o),
	}
	a.calls.New = func() any { return new(call) }
	a.nodes = newNodes(o.Store, a.newNode)
	m, err := newMetrics(o.Meter, a)
	if err != nil {
		return nil, err
	}
	a.metrics = m
	return a, nil
}

// Admit decides req at now. It never fails: where no bucket can be asked within the deadline, the fallback decides. ctx
// carries the trace; that the client has gone neither stops a decision under way nor counts against Redis.
func (a *Admitter) Admit(ctx context.Context, now time.Time, req Request) limit.Decision {
	if parent := trace.SpanFromContext(ctx); parent.IsRecording() {
		return a.traced(ctx, now, req)
	}
	return a.admit(ctx, now, req)
}

func (a *Admitter) admit(ctx context.Context, now time.Time, req Request) limit.Decision {
	snap := a.rules.Load()
	c := a.calls.Get().(*call)
	c.intact = true
	d, byRule := c.find(snap, now, &req)
	switch {
	case byRule:
	case c.dear(&d):
		a.count(c, &d)
	case c.tiny && a.opts.Elsewhere != nil:
		d = a.elsewhere(ctx, now, c)
		a.count(c, &d)
	default:
		d = a.enforce(ctx, now, c)
		c.beyond(len(snap.Regions()), &d)
		a.count(c, &d)
	}
	if len(c.shadows) > 0 {
		a.shadow(ctx, now, c)
	}
	if c.intact {
		a.calls.Put(c)
	}
	a.metrics.decided(d.Outcome, d.Source)
	if d.Outcome != limit.Allowed && snap.Shadow() {
		a.metrics.spared(d.Outcome)
		d.Outcome, d.RetryAfter = limit.Allowed, 0
	}
	return d
}

// enforce decides the limits that count, by whoever can answer first.
func (a *Admitter) enforce(ctx context.Context, now time.Time, c *call) limit.Decision {
	c.remembered(a.memory)
	if d, ok := c.refused(a.since(now)); ok {
		return d
	}
	if c.ahead {
		return a.prefetched(ctx, now, c)
	}
	return a.ask(ctx, now, c)
}

// count notes what was asked for.
func (a *Admitter) count(c *call, d *limit.Decision) {
	if a.counter == nil {
		return
	}
	for i := range c.limits {
		a.counter.Count(c.limits[i].Key, c.limits[i].Cost, d.Outcome == limit.Allowed, *d)
	}
}

// since is now as the parts in memory count it: nanoseconds since the start, on the monotonic clock.
func (a *Admitter) since(now time.Time) int64 { return int64(now.Sub(a.start)) }

// Degraded tells that Redis, or a node of it, is not being asked, or only on trial.
func (a *Admitter) Degraded() bool { return a.nodes.away() > 0 }

// Credited drops refusals remembered of keys that are being given tokens or share, and remembers none for a moment: the news
// may be ahead of the gift.
func (a *Admitter) Credited(now time.Time, keys ...limit.Key) {
	for _, k := range keys {
		if e := a.memory.keys.Get(k); e != nil {
			e.expecting.Store(a.since(now) + creditWithin)
			e.denial.Store(nil)
		}
	}
}

// Distrust drops all tokens taken ahead: the share they came from can no longer be trusted (a fence, a lost Redis).
func (a *Admitter) Distrust() { a.memory.life.Add(1) }

// terms are what the fallback may use.
func (a *Admitter) terms(limits []bucket.Limit) fallback.Terms {
	return fallback.Terms{
		Instances: a.opts.Instances(),
		Floor:     limits[0].Floor,
		FloorOnly: a.opts.Strict || a.opts.Fenced(),
	}
}
