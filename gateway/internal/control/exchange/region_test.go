package exchange

import (
	"context"
	"runtime"
	"testing"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"partidor.dev/partidor/gateway/internal/snapshot"
	"partidor.dev/partidor/shared/limit"
	"partidor.dev/partidor/shared/rights"
	"partidor.dev/partidor/shared/wire"
)

// TestRegionAdded: a region that comes when a key has long moved has no share of it until somebody gives it some.
func TestRegionAdded(t *testing.T) {
	eu, us := moved(t)
	rule := limit.Rule{Capacity: 200, Refill: 1, PeriodSeconds: 100, Revision: limit.Revision{Epoch: 1, Number: 1}}
	ap := newSites(t, rule, regionShare{"ap", limit.Whole})[0]
	regions := []snapshot.Region{{Name: "ap", Base: 200_000, Floor: 10_000}, {Name: "eu", Base: 500_000, Floor: 25_000}, {Name: "us", Base: 300_000, Floor: 15_000}}
	for _, s := range []*site{eu, us, ap} {
		if err := s.rules.Update(func(b *snapshot.Builder) error {
			if s == ap {
				b.MarkMoved(key, 0) // as the ledger says
			}
			return b.SetRegions(regions, limit.Revision{Epoch: 1, Number: 2})
		}); err != nil {
			t.Fatal(err)
		}
	}
	link(t, ap, eu, 0, 0, time.Millisecond)
	link(t, ap, us, 0, 0, time.Millisecond)
	ap.start(t, "ap-1", nil)
	ap.alive(t)
	if ap.take(t, key, 1) {
		t.Error("ap admitted a request without a share")
	}
	cycle := int64(10)
	await(t, "us has given ap some", func() bool {
		cycle++
		advise(t, us, context.Background(), wire.Advice{Term: 1, Cycle: cycle, Moves: move("ap", 800_000, 500_000)})
		return ap.state(t, key).Share == 300_000
	})
	await(t, "nothing is in flight", func() bool { u := us.state(t, key); return !u.Pair("ap").Pending() })
	if e, u, a := eu.state(t, key), us.state(t, key), ap.state(t, key); e.Share+u.Share+a.Share != limit.Whole || a.Base != 0 {
		t.Errorf("shares %d, %d and %d, ap's base %d", e.Share, u.Share, a.Share, a.Base)
	}
}

// TestLoans: one region is flooded while the other is idle. Tokens come over, and what both admit stays within the limit.
func TestLoans(t *testing.T) {
	rule := limit.Rule{Capacity: 200, Refill: 100, PeriodSeconds: 1, Revision: limit.Revision{Epoch: 1, Number: 1}}
	sites := newSites(t, rule, regionShare{"eu", 700_000}, regionShare{"us", 300_000})
	eu, us := sites[0], sites[1]
	link(t, eu, us, 0.05, 0.1, 20*time.Millisecond)
	counts := &counter{}
	heat := NewHeat(counts, 1000)
	spans := tracetest.NewSpanRecorder()
	tracer := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans)).Tracer("test")
	eu.start(t, "eu-1", func(o *Options) { o.Tracer = tracer })
	us.start(t, "us-1", func(o *Options) { o.Heat, o.Tracer = heat, tracer })
	eu.alive(t)
	us.alive(t)
	began, admitted := time.Now(), 0
	await(t, "us admits far more than its base share", func() bool {
		for range 5 {
			d := us.decide(t, key, 1)
			allowed := d.Outcome == limit.Allowed
			counts.count(allowed)
			heat.Note(&d)
			if allowed {
				admitted++
			}
		}
		return time.Since(began) > 3*time.Second
	})
	elapsed := time.Since(began).Seconds()
	if own, world := 60+30*elapsed, 200+100*elapsed; float64(admitted) < 1.8*own || float64(admitted) > world+1 {
		t.Errorf("us admitted %d in %.1f s: its own share is %.0f, the world's %.0f", admitted, elapsed, own, world)
	}
	if e, u := eu.state(t, key), us.state(t, key); e.Share < e.Floor || e.Share+u.Share > limit.Whole {
		t.Errorf("shares %d and %d", e.Share, u.Share)
	}
	await(t, "an ask, its loan and its arrival are one trace", func() bool {
		inTrace := map[trace.TraceID]map[string]bool{}
		for _, s := range spans.Ended() {
			id := s.SpanContext().TraceID()
			if inTrace[id] == nil {
				inTrace[id] = map[string]bool{}
			}
			inTrace[id][s.Name()] = true
		}
		for _, names := range inTrace {
			if names["ask"] && names["transfer.lend"] && names["transfer.send"] && names["transfer.apply"] {
				return true
			}
		}
		return false
	})
}

// TestReloadsLeakNothing: a thousand new snapshots leave goroutines and connections as they were.
func TestReloadsLeakNothing(t *testing.T) {
	eu, _ := moved(t)
	await(t, "quiet", func() bool { return eu.state(t, key).Phase == rights.Active })
	goroutines := runtime.NumGoroutine()
	connections := eu.client.PoolStats().TotalConns
	for i := range 1000 {
		rule := limit.Rule{Capacity: 200 + int64(i), Refill: 1, PeriodSeconds: 100, Revision: limit.Revision{Epoch: 1, Number: int64(i) + 2}}
		if err := eu.rules.Update(func(b *snapshot.Builder) error {
			b.SetRule(key.Tenant, key.Route, &rule)
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	await(t, "as many goroutines and connections as before", func() bool {
		return runtime.NumGoroutine() <= goroutines+2 && eu.client.PoolStats().TotalConns <= max(connections, 16)
	})
}
