package sim

import (
	"fmt"
	"testing"
	"time"

	"partidor.dev/partidor/rebalancer/internal/plan"
	"partidor.dev/partidor/shared/limit"
	"pgregory.net/rapid"
)

// drawWorld makes a short scenario in which nearly everything is broken now and then.
func drawWorld(t *rapid.T) Scenario {
	n := rapid.IntRange(2, 4).Draw(t, "regions")
	weights := make([]float64, n)
	for i := range weights {
		weights[i] = rapid.Float64Range(0.05, 1).Draw(t, "base")
	}
	parameters := plan.DefaultParameters()
	parameters.Cycle = plan.MinCycle
	s := Scenario{
		Name: "hostile", Duration: 100 * time.Second, Step: 20 * time.Millisecond, Parameters: parameters,
		Rule: limit.Rule{
			Capacity: int64(rapid.IntRange(1, 400).Draw(t, "capacity")), Refill: int64(rapid.IntRange(1, 200).Draw(t, "refill")),
			PeriodSeconds: int64(rapid.IntRange(1, 3).Draw(t, "period")),
		},
		Network: Network{
			OneWay: time.Duration(rapid.IntRange(1, 300).Draw(t, "one way")) * time.Millisecond,
			Loss:   rapid.Float64Range(0, 0.4).Draw(t, "loss"), Repeat: rapid.Float64Range(0, 0.3).Draw(t, "repeat"),
			Reorder: rapid.Float64Range(0, 0.3).Draw(t, "reorder"),
		},
	}
	at := func(label string) time.Duration {
		return time.Duration(rapid.IntRange(0, 100).Draw(t, label)) * time.Second
	}
	for i, base := range limit.Apportion(weights) {
		rate := rapid.Float64Range(0, 2).Draw(t, "load") * s.rate()
		s.Regions = append(s.Regions, Region{Name: names[i], Base: base, Traffic: Sum{
			Square{High: rate, Low: rate / 10, Phase: rapid.Float64Range(0, 1).Draw(t, "phase"), Period: time.Duration(rapid.IntRange(2, 60).Draw(t, "period")) * time.Second},
		}})
	}
	for i := range rapid.IntRange(0, 4).Draw(t, "faults") {
		f := Fault{Kind: FaultKind(rapid.IntRange(int(Isolated), int(DataLost)).Draw(t, "kind")), From: at("from")}
		f.To = f.From + at(fmt.Sprint("for", i))
		f.Region = rapid.SampledFrom(append([]string{Control}, names[:n]...)).Draw(t, "node")
		s.Faults = append(s.Faults, f)
	}
	if rapid.Bool().Draw(t, "leases") {
		s = s.leased()
	}
	return s
}

// However the network, the regions and the control plane fail: all regions together never admit a token more than the
// limit, in any interval.
func TestNothingExceedsTheLimit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawWorld(t)
		strategy, err := newStrategy(NamePartidor)
		if err != nil {
			t.Fatal(err)
		}
		o := run(&s, rapid.Uint64Range(0, 1000).Draw(t, "seed"), strategy, nil)
		if o.Depth >= 1 {
			t.Fatalf("over-admission of %v tokens", o.Depth)
		}
	})
}
