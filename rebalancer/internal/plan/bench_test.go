package plan

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"partidor.dev/partidor/shared/limit"
)

// activeKeys makes n keys over three regions, every second of which has work for the plan.
func activeKeys(n int) Input {
	in := Input{
		Now: time.Unix(0, 0), Parameters: DefaultParameters(),
		Regions: []Region{{Name: "eu", Base: 500_000}, {Name: "us", Base: 300_000}, {Name: "ap", Base: 200_000}},
	}
	rule := &limit.Rule{Capacity: 200, Refill: 100, PeriodSeconds: 1}
	for i := range n {
		d := Demand{Key: limit.Key{Tenant: fmt.Sprintf("tenant-%d", i), Route: "create-order"}, Rule: rule}
		for j, r := range in.Regions {
			load := float64((i*7+j*31)%90) * 0.7
			d.Loads = append(d.Loads, Load{Known: true, Share: r.Base, Mean: load, Peak: load * 1.2})
		}
		in.Keys = append(in.Keys, d)
	}
	return in
}

// One plan of 100,000 active keys over three regions: at most 1 s and 500 MB.
func BenchmarkPlan100kKeys(b *testing.B) {
	in := activeKeys(100_000)
	b.ReportAllocs()
	var changed int
	for b.Loop() {
		changed = Plan(in).Changed
	}
	b.ReportMetric(float64(changed), "changed")
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	b.ReportMetric(float64(m.Sys)/(1<<20), "MB-from-OS")
}

func TestPlanningAllocatesPerPlanNotPerKey(t *testing.T) {
	small, large := activeKeys(1_000), activeKeys(10_000)
	a := testing.AllocsPerRun(3, func() { Plan(small) })
	b := testing.AllocsPerRun(3, func() { Plan(large) })
	if b > a+20 {
		t.Errorf("%v allocations for 1,000 keys, %v for 10,000", a, b)
	}
}
