package plan

import (
	"testing"
	"time"

	"partidor.dev/partidor/shared/limit"
	"pgregory.net/rapid"
)

// drawInput makes one hostile key: any shares, any loads, silent, pinned and drained regions, sums that do not add up.
func drawInput(t *rapid.T) Input {
	n := rapid.IntRange(1, 8).Draw(t, "regions")
	weights := rapid.SliceOfN(rapid.Float64Range(0, 1), n, n).Draw(t, "base")
	base := limit.Apportion(weights)
	p := DefaultParameters()
	p.Deadband = limit.Share(rapid.IntRange(0, 100_000).Draw(t, "deadband"))
	p.Step = limit.Share(rapid.IntRange(1, 1_000_000).Draw(t, "step"))
	p.Headroom = rapid.Float64Range(0, 4).Draw(t, "headroom")
	p.SpareByNeed = rapid.Float64Range(0, 1).Draw(t, "spare")
	in := Input{Parameters: p, Homes: rapid.Bool().Draw(t, "homes")}
	for i := range n {
		in.Regions = append(in.Regions, Region{
			Name: string(rune('a' + i)), Base: base[i],
			Drained: rapid.IntRange(0, 9).Draw(t, "drained") == 0,
		})
	}
	d := Demand{
		Key: limit.Key{Tenant: "t", Route: "r"},
		Rule: &limit.Rule{
			MaxCost:  int64(rapid.IntRange(0, 20).Draw(t, "cost")),
			Capacity: rapid.Int64Range(1, limit.MaxTokens).Draw(t, "capacity"),
			Refill:   rapid.Int64Range(1, 1_000_000).Draw(t, "refill"), PeriodSeconds: rapid.Int64Range(1, 100).Draw(t, "period"),
		},
	}
	if rapid.Bool().Draw(t, "small") {
		d.Rule.Capacity = d.Rule.Capacity%200 + 1
	}
	if rapid.Bool().Draw(t, "last") {
		d.Last = limit.Apportion(rapid.SliceOfN(rapid.Float64Range(0, 1), n, n).Draw(t, "last"))
	}
	if rapid.Bool().Draw(t, "pins") {
		d.Pins = make([]limit.Share, n)
		for i := range d.Pins {
			d.Pins[i] = limit.Share(rapid.IntRange(-1, 1_000_000).Draw(t, "pin"))
		}
	}
	for range n {
		d.Loads = append(d.Loads, Load{
			Known: rapid.IntRange(0, 4).Draw(t, "known") > 0,
			Share: limit.Share(rapid.IntRange(-5, 1_100_000).Draw(t, "share")),
			Mean:  rapid.OneOf(rapid.Just(0.0), rapid.Float64Range(0, 1e6), rapid.Float64()).Draw(t, "mean"),
			Peak:  rapid.OneOf(rapid.Just(0.0), rapid.Float64Range(0, 1e6), rapid.Float64()).Draw(t, "peak"),
		})
	}
	in.Keys = []Demand{d}
	return in
}

func TestSplitsAlwaysAddUp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := drawInput(t)
		res := Plan(in)
		got := res.Targets[0]
		if sum := total(got.Shares); sum != limit.Whole {
			t.Fatalf("targets %v add up to %d", got.Shares, sum)
		}
		if sum := total(got.Observed); sum != limit.Whole {
			t.Fatalf("observed %v adds up to %d", got.Observed, sum)
		}
		for i, share := range got.Shares {
			if share < 0 {
				t.Fatalf("region %d has a negative share: %v", i, got.Shares)
			}
			if !in.Keys[0].Loads[i].Known && share < got.Observed[i] {
				t.Fatalf("silent region %d loses share: %v -> %v", i, got.Observed, got.Shares)
			}
		}
		checkMoves(t, got, res.Moves)
	})
}

// checkMoves: moves lead exactly from observed to target, givers only give and receivers only get.
func checkMoves(t *rapid.T, target Target, moves []Move) {
	after := append([]limit.Share(nil), target.Observed...)
	gives, gets := map[int]bool{}, map[int]bool{}
	for _, m := range moves {
		if m.Amount <= 0 {
			t.Fatalf("empty move %+v", m)
		}
		after[m.From] -= m.Amount
		after[m.To] += m.Amount
		gives[m.From], gets[m.To] = true, true
		if m.Held != target.Observed[m.From] || m.Target != target.Shares[m.From] {
			t.Fatalf("move %+v disagrees with %v -> %v", m, target.Observed, target.Shares)
		}
	}
	for i := range after {
		if after[i] != target.Shares[i] {
			t.Fatalf("moves lead to %v, not %v", after, target.Shares)
		}
		if gives[i] && gets[i] {
			t.Fatalf("region %d both gives and gets", i)
		}
	}
	if len(moves) >= len(after) && len(moves) > 0 {
		t.Fatalf("%d moves for %d regions", len(moves), len(after))
	}
}

func total(v []limit.Share) (sum limit.Share) {
	for _, s := range v {
		sum += s
	}
	return sum
}

func TestSameInputSameResult(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := drawInput(t)
		in.Now = time.Unix(0, 0)
		a, b := Plan(in), Plan(in)
		for i := range a.Targets[0].Shares {
			if a.Targets[0].Shares[i] != b.Targets[0].Shares[i] {
				t.Fatalf("%v then %v", a.Targets, b.Targets)
			}
		}
	})
}
