package board

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"partidor.dev/partidor/rebalancer/internal/collect"
	"partidor.dev/partidor/rebalancer/internal/ledger"
	"partidor.dev/partidor/rebalancer/internal/plan"
	"partidor.dev/partidor/shared/limit"
)

// many is a mirror of tenants × routes with splits for every tenth key, and demand for every key, in name order.
func many(tenants, routes int) (*ledger.Mirror, []plan.Demand) {
	m := &ledger.Mirror{Rules: ledger.NewRules(), Splits: map[limit.Key]ledger.Split{}, Parameters: map[string]ledger.Parameter{}}
	for i, name := range []string{"ap", "eu", "us"} {
		m.Regions = append(m.Regions, ledger.Region{Name: name, Base: limit.Share(300_000 + 50_000*i), Published: limit.Share(300_000 + 50_000*i), State: ledger.RegionActive})
	}
	rule := &limit.Rule{Capacity: 200, Refill: 100, PeriodSeconds: 1}
	var demand []plan.Demand
	for i := range tenants {
		for j := range routes {
			key := limit.Key{Tenant: fmt.Sprintf("tenant-%06d", i), Route: fmt.Sprintf("route-%d", j)}
			m.Rules.Set(key.Tenant, key.Route, rule)
			demand = append(demand, plan.Demand{Key: key, Loads: []plan.Load{{Known: true, Offered: float64(i % 50), Refused: float64(i % 7)}, {Known: true, Share: 350_000}, {}}})
			if len(demand)%10 == 0 {
				m.Splits[key] = ledger.Split{Key: key, Reason: "follow", Regions: []ledger.RegionShare{{Region: "ap", Target: 300_000}, {Region: "eu", Target: 350_000}, {Region: "us", Target: 350_000}}}
			}
		}
	}
	return m, demand
}

// crowd is a collector of what many makes, and a ledger beside it.
type crowd struct {
	source
	mirror *ledger.Mirror
	demand []plan.Demand // in the order of names
	heard  []collect.RegionStatus
}

func (c *crowd) Refresh(_ context.Context, m *ledger.Mirror) error {
	*m = *c.mirror
	return nil
}

func (c *crowd) Survey(time.Time, []string) (s collect.Survey) {
	for _, d := range c.demand {
		s.Keys = append(s.Keys, d.Key)
		for _, l := range d.Loads {
			s.Rates = append(s.Rates, collect.Rate{Offered: float32(l.Offered), Refused: float32(l.Refused)})
		}
	}
	return s
}

func (c *crowd) Loads(_ time.Time, names []limit.Key, regions []string) []plan.Demand {
	out := make([]plan.Demand, len(names))
	for i, name := range names {
		out[i] = plan.Demand{Key: name, Loads: make([]plan.Load, len(regions))}
		if at, ok := slices.BinarySearchFunc(c.demand, name, func(d plan.Demand, k limit.Key) int { return collect.CompareKeys(d.Key, k) }); ok {
			out[i] = c.demand[at]
		}
	}
	return out
}

func (c *crowd) Regions(time.Time) []collect.RegionStatus { return c.heard }

func TestPictureHasEveryKey(t *testing.T) {
	m, demand := many(100, 3)
	idle := limit.Key{Tenant: "tenant-000050", Route: "a-idle-route"}
	m.Splits[idle] = ledger.Split{Key: idle, Regions: []ledger.RegionShare{{Region: "eu", Target: 1_000_000}}}
	c := &crowd{mirror: m, demand: demand, heard: []collect.RegionStatus{{Name: "eu", Known: true, Instances: 2, Silence: time.Second}}}
	b := New(c, c)
	p, err := b.Picture(t.Context())
	if err != nil || len(p.Keys) != 301 {
		t.Fatalf("%d keys, %v; want those with demand and the one with a split only", len(p.Keys), err)
	}
	offered := map[limit.Key]float64{idle: 0}
	for _, d := range demand {
		offered[d.Key] = d.Loads[0].Offered
	}
	for i, key := range p.Keys {
		if at := p.Search(key.Tenant, key.Route); at != i {
			t.Fatalf("key %s is found at %d, not at %d", key, at, i)
		}
		if got, _ := p.Rate(i); got != offered[key] {
			t.Fatalf("key %s offers %v, want %v", key, got, offered[key])
		}
	}
	k := b.Keys([]limit.Key{{Tenant: "tenant-000003", Route: "route-1"}})[0]
	if k.Rule == nil || k.Rule.Capacity != 200 || k.Regions[1].Share != 350_000 || !k.Regions[1].Reported || k.Regions[2].Reported {
		t.Errorf("key %+v", k)
	}
	if k := b.Keys([]limit.Key{{Tenant: "nobody", Route: "new"}})[0]; k.Tenant != "nobody" || k.Regions[0].Share != 300_000 {
		t.Errorf("a key that nobody has used: %+v", k)
	}
	if r := p.Regions[1]; !r.Known || r.Instances != 2 || r.Silence != 1 {
		t.Errorf("region %+v", r)
	}
}

// The most refused come first, then those that offer most, however many are wanted.
func TestMostRefused(t *testing.T) {
	m, demand := many(100, 3)
	c := &crowd{mirror: m, demand: demand}
	p, err := New(c, c).Picture(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	all := func(int) bool { return true }
	whole := p.MostRefused(1000, all)
	if len(whole) != 300 {
		t.Fatalf("%d of 300 keys", len(whole))
	}
	for i := 1; i < len(whole); i++ {
		of, refused := p.Rate(whole[i-1])
		then, less := p.Rate(whole[i])
		if refused < less || refused == less && of < then {
			t.Fatalf("%v, %v comes before %v, %v", of, refused, then, less)
		}
	}
	for _, n := range []int{0, 1, 7, 60, 299} {
		if got := p.MostRefused(n, all); !slices.Equal(got, whole[:n]) {
			t.Errorf("the foremost %d are %v, want %v", n, got, whole[:n])
		}
	}
	odd := func(key int) bool { return p.Keys[key].Route == "route-1" }
	if got := p.MostRefused(5, odd); len(got) != 5 || !odd(got[0]) || !odd(got[4]) {
		t.Errorf("of one route: %v", got)
	}
}

// source counts how often it is asked.
type source struct {
	asked int
	fail  error
}

func (s *source) Refresh(_ context.Context, m *ledger.Mirror) error {
	s.asked++
	if s.fail == nil {
		m.Rules = ledger.NewRules()
	}
	return s.fail
}

func (s *source) Demand(time.Time, []string) []plan.Demand { return nil }

func (s *source) Survey(time.Time, []string) (none collect.Survey) { return none }

func (s *source) Loads(time.Time, []limit.Key, []string) []plan.Demand { return nil }

func (s *source) Regions(time.Time) []collect.RegionStatus { return nil }

func (s *source) Details(time.Time, limit.Key, []string) []collect.Detail { return nil }

func TestPictureServesForAMomentAndOutlivesTheLedger(t *testing.T) {
	s := &source{}
	b := New(s, s)
	for range 5 {
		if p, err := b.Picture(t.Context()); p == nil || err != nil {
			t.Fatal(p, err)
		}
	}
	if s.asked != 1 {
		t.Errorf("the ledger was asked %d times for one moment", s.asked)
	}
	b.Outdate()
	s.fail = context.DeadlineExceeded
	if p, err := b.Picture(t.Context()); p == nil || err == nil {
		t.Errorf("while the ledger is away: %v, %v; want the last picture and the error", p, err)
	}
	if s.asked != 2 {
		t.Errorf("asked %d times, want again after a change", s.asked)
	}
}

// BenchmarkLook is what one look costs with 100,000 tenants × 3 routes in three regions: a new picture, which serves all who look
// for a second, and the page of keys that one of them sees.
func BenchmarkLook(b *testing.B) {
	m, demand := many(100_000, 3)
	c := &crowd{mirror: m, demand: demand}
	survey, moved, now := c.Survey(time.Now(), nil), New(c, c), time.Now()
	moved.mirror = *m
	others := moved.movedKeys()
	board := New(c, c)
	p, err := board.Picture(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	b.Run("picture", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if p := newPicture(m, survey, others, nil, now); len(p.Keys) != 300_000 {
				b.Fatal(len(p.Keys))
			}
		}
	})
	b.Run("page", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			names := make([]limit.Key, 0, 60)
			for _, i := range p.MostRefused(60, func(int) bool { return true }) {
				names = append(names, p.Keys[i])
			}
			if keys := board.Keys(names); len(keys) != 60 {
				b.Fatal(len(keys))
			}
		}
	})
}
