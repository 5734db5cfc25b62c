package collect

import (
	"fmt"
	"math"
	"testing"
	"time"

	"partidor.dev/partidor/rebalancer/internal/plan"
	"partidor.dev/partidor/shared/limit"
	"partidor.dev/partidor/shared/wire"
	"pgregory.net/rapid"
)

// gateway is one instance as a test plays it.
type gateway struct {
	region, name string
	started      int64
	born         time.Duration
	sequence     uint64
	counters     map[limit.Key]wire.KeyUsage
	changed      map[limit.Key]bool
}

func newGateway(region, name string, born time.Duration) *gateway {
	return &gateway{
		region: region, name: name, born: born, started: 1000 + int64(born/time.Millisecond),
		counters: map[limit.Key]wire.KeyUsage{}, changed: map[limit.Key]bool{},
	}
}

func (g *gateway) serve(k limit.Key, admitted, refused uint64) {
	u := g.counters[k]
	u.Tenant, u.Route = k.Tenant, k.Route
	u.Admitted += admitted
	u.Refused += refused
	u.Share = 500_000
	g.counters[k] = u
	g.changed[k] = true
}

// report holds only what has changed, as gateways do.
func (g *gateway) report(now time.Duration) *wire.Usage {
	g.sequence++
	u := &wire.Usage{ElapsedMillis: int64((now - g.born) / time.Millisecond)}
	u.Header = wire.Header{Version: wire.Version, Region: g.region, Instance: g.name, Started: g.started, Sequence: g.sequence}
	for k := range g.changed {
		u.Keys = append(u.Keys, g.counters[k])
	}
	g.changed = map[limit.Key]bool{}
	return u
}

type drops map[string]int

func testTable(o Options) (*Table, drops) {
	d := drops{}
	return NewTable(o.withDefaults(), func(reason string, n int) { d[reason] += n }), d
}

var shop = limit.Key{Tenant: "shop-a", Route: "create-order"}

func loadOf(t *testing.T, tb *Table, now time.Duration, region string) plan.Load {
	t.Helper()
	for _, d := range tb.demand(now, []string{region}, nil) {
		if d.Key == shop {
			return d.Loads[0]
		}
	}
	return plan.Load{}
}

// Case L23: steady 10/s, silence, then 1000/s: seen within one window after the reports, and exactly.
func TestRatesAreExact(t *testing.T) {
	tb, dropped := testTable(Options{})
	g := newGateway("eu", "g1", 0)
	now := time.Duration(0)
	run := func(seconds int, perSecond uint64) {
		for range seconds {
			now += time.Second
			if perSecond > 0 {
				g.serve(shop, perSecond/2, perSecond-perSecond/2)
			}
			if now%(2*time.Second) == 0 {
				tb.Usage(now, g.report(now))
			}
		}
	}
	run(60, 10)
	if l := loadOf(t, tb, now, "eu"); !l.Known || math.Abs(l.Offered-10) > 0.5 || math.Abs(l.Refused-5) > 0.25 || math.Abs(l.Mean-10) > 0.5 {
		t.Errorf("steady 10/s reads %+v", l)
	}
	run(20, 0)
	if l := loadOf(t, tb, now, "eu"); l.Offered != 0 || !l.Known {
		t.Errorf("silence of an idle region reads %+v", l)
	}
	run(10, 1000)
	if l := loadOf(t, tb, now, "eu"); l.Offered < 900 {
		t.Errorf("a rise to 1000/s reads %+v two windows later", l)
	}
	if len(dropped) > 0 {
		t.Errorf("dropped: %v", dropped)
	}
}

func TestKeyIdleForLongIsNotSpreadOverItsIdleness(t *testing.T) {
	tb, _ := testTable(Options{})
	g := newGateway("eu", "g1", 0)
	other := limit.Key{Tenant: "shop-b", Route: "create-order"}
	var now time.Duration
	for now < 10*time.Minute {
		now += 2 * time.Second
		g.serve(other, 1, 0)
		if now == 10*time.Second || now > 9*time.Minute+50*time.Second {
			g.serve(shop, 200, 0)
		}
		tb.Usage(now, g.report(now))
	}
	if l := loadOf(t, tb, now, "eu"); math.Abs(l.Offered-100) > 5 {
		t.Errorf("100/s after a long pause reads %.1f/s", l.Offered)
	}
}

func TestRegionIsUnknownUntilHeardAndAfterSilence(t *testing.T) {
	tb, _ := testTable(Options{})
	g := newGateway("eu", "g1", -time.Hour) // older than the rebalancer
	g.serve(shop, 1_000_000, 0)
	now := time.Duration(0)
	tick := func() {
		now += 2 * time.Second
		g.serve(shop, 20, 0)
		tb.Usage(now, g.report(now))
	}
	tick()
	if l := loadOf(t, tb, now, "eu"); l.Known {
		t.Error("known after one report")
	}
	for range 20 {
		tick()
	}
	if l := loadOf(t, tb, now, "eu"); !l.Known || math.Abs(l.Mean-10) > 0.5 || l.Peak > 11 {
		t.Errorf("counts from before the rebalancer began show: %+v", l)
	}
	now += time.Minute
	if l := loadOf(t, tb, now, "eu"); l.Known {
		t.Error("known after a minute of silence")
	}
	tick()
	if l := loadOf(t, tb, now, "eu"); l.Known {
		t.Error("known at once after a silence")
	}
	for range 10 {
		tick()
	}
	if l := loadOf(t, tb, now, "eu"); !l.Known || math.Abs(l.Mean-10) > 1 {
		t.Errorf("after a silence: %+v", l)
	}
}

func TestNewLifeStartsFromZero(t *testing.T) {
	tb, _ := testTable(Options{})
	now := time.Duration(0)
	for life := range 3 {
		g := newGateway("eu", "g1", now)
		for range 15 {
			now += 2 * time.Second
			g.serve(shop, 20, 0)
			tb.Usage(now, g.report(now))
			if life == 1 {
				old := newGateway("eu", "g1", 0)
				old.serve(shop, 1e6, 0)
				tb.Usage(now, old.report(now)) // of a former life, late
			}
		}
		if l := loadOf(t, tb, now, "eu"); math.Abs(l.Mean-10) > 0.5 {
			t.Errorf("life %d reads %+v", life, l)
		}
	}
}

func TestNonsenseIsDroppedAndCounted(t *testing.T) {
	tb, dropped := testTable(Options{MaxKeys: 10, MaxInstances: 2, MaxRegions: 2})
	g := newGateway("eu", "g1", 0)
	good := func() *wire.Usage { g.serve(shop, 1, 0); return g.report(time.Duration(g.sequence+1) * time.Second) }
	now := time.Second
	tb.Usage(now, good())
	for name, u := range map[string]func(*wire.Usage){
		"negative age":      func(u *wire.Usage) { u.ElapsedMillis = -1 },
		"impossible age":    func(u *wire.Usage) { u.ElapsedMillis = math.MaxInt64 },
		"younger than told": func(u *wire.Usage) { u.ElapsedMillis = 0 },
		"no instance":       func(u *wire.Usage) { u.Instance = "" },
		"wildcard region":   func(u *wire.Usage) { u.Region = "*" },
		"no tenant":         func(u *wire.Usage) { u.Keys[0].Tenant = "" },
		"absurd count":      func(u *wire.Usage) { u.Keys[0].Admitted = math.MaxUint64 },
		"former life":       func(u *wire.Usage) { u.Started-- },
	} {
		m := good()
		u(m)
		before := total(dropped)
		now += time.Second
		tb.Usage(now, m)
		if total(dropped) == before {
			t.Errorf("%s: not dropped", name)
		}
	}
	m := good()
	tb.Usage(now, m)
	before := total(dropped)
	tb.Usage(now, m)
	if dropped[dropRepeated] == 0 || total(dropped) != before+1 {
		t.Errorf("a repeated report is not counted: %v", dropped)
	}
	for i := range 100 {
		g.serve(limit.Key{Tenant: fmt.Sprintf("t%d", i), Route: "r"}, 1, 0)
		h := wire.Heartbeat{Header: wire.Header{Region: fmt.Sprintf("r%d", i), Instance: fmt.Sprintf("i%d", i)}}
		tb.Heartbeat(now, &h)
	}
	tb.Usage(now, good())
	if len(tb.keys) > 10 || len(tb.instances) > 2 || len(tb.states) > 2 {
		t.Errorf("%d keys, %d instances, %d regions", len(tb.keys), len(tb.instances), len(tb.states))
	}
}

func total(d drops) (n int) {
	for _, v := range d {
		n += v
	}
	return n
}

func TestForgotten(t *testing.T) {
	tb, _ := testTable(Options{})
	g := newGateway("eu", "g1", 0)
	g.serve(shop, 1, 0)
	tb.Usage(time.Second, g.report(time.Second))
	tb.Sweep(time.Minute + 2*time.Second)
	if len(tb.instances) != 0 {
		t.Error("a dead instance is kept")
	}
	tb.Sweep(16 * time.Minute)
	if len(tb.keys) != 0 {
		t.Error("an idle key is kept")
	}
}

// Whatever the network does to reports (loss, repetition, reordering), nothing is counted that was not offered, and once
// a last report arrives everything told since the region was known has been counted at most once.
func TestHostileDelivery(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tb, _ := testTable(Options{Window: time.Hour}) // one open window adds everything up
		g := newGateway("eu", "g1", 0)
		var sent []*wire.Usage
		now, offered := time.Duration(0), uint64(0)
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			now += 2 * time.Second
			n := uint64(rapid.IntRange(0, 50).Draw(t, "served"))
			if n > 0 {
				g.serve(shop, n, n/2)
				offered += n + n/2
			}
			u := g.report(now)
			sent = append(sent, u)
			if rapid.IntRange(0, 2).Draw(t, "arrives") > 0 {
				tb.Usage(now, u)
			}
			if i := rapid.IntRange(-5, len(sent)-1).Draw(t, "again"); i >= 0 {
				tb.Usage(now, sent[i])
			}
		}
		g.serve(shop, 1, 0)
		offered++
		now += 2 * time.Second
		tb.Usage(now, g.report(now))
		counted := 0.0
		for _, k := range tb.keys {
			counted += k.loads[0].current.offered
		}
		if math.Abs(counted-float64(offered)) > 1e-6 {
			t.Fatalf("offered %d, counted %v", offered, counted)
		}
	})
}
