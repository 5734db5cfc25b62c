package board

import (
	"context"
	"fmt"
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

func TestDrawFindsEveryKey(t *testing.T) {
	m, demand := many(100, 3)
	idle := limit.Key{Tenant: "tenant-000050", Route: "a-idle-route"}
	m.Splits[idle] = ledger.Split{Key: idle, Regions: []ledger.RegionShare{{Region: "eu", Target: 1_000_000}}}
	p := Draw(m, demand, []collect.RegionStatus{{Name: "eu", Known: true, Instances: 2, Silence: time.Second}}, time.Now())
	if len(p.Keys) != 301 {
		t.Fatalf("%d keys, want those with demand and the one with a split only", len(p.Keys))
	}
	for i := range p.Keys {
		k := &p.Keys[i]
		if found, ok := p.Find(k.Tenant, k.Route); !ok || found != k {
			t.Fatalf("key %s/%s is not found where it is", k.Tenant, k.Route)
		}
	}
	k, _ := p.Find("tenant-000003", "route-1")
	if k.Rule == nil || k.Rule.Capacity != 200 || k.Regions[1].Share != 350_000 || !k.Regions[1].Reported || k.Regions[2].Reported {
		t.Errorf("key %+v", k)
	}
	for i := 1; i < len(p.Pressed); i++ {
		if p.Keys[p.Pressed[i-1]].Refused < p.Keys[p.Pressed[i]].Refused {
			t.Fatal("keys under pressure are not in order")
		}
	}
	if r := p.Regions[1]; !r.Known || r.Instances != 2 || r.Silence != 1 {
		t.Errorf("region %+v", r)
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

// BenchmarkDraw is what one look costs with 100,000 tenants × 3 routes in three regions.
func BenchmarkDraw(b *testing.B) {
	m, demand := many(100_000, 3)
	now := time.Now()
	b.ReportAllocs()
	for b.Loop() {
		if p := Draw(m, demand, nil, now); len(p.Keys) != 300_000 {
			b.Fatal(len(p.Keys))
		}
	}
}
