package snapshot

import (
	"testing"

	"partidor.dev/partidor/shared/limit"
)

func TestTinyLimitsSitAtTheirHome(t *testing.T) {
	for region, want := range map[string]limit.Share{"eu": 0, "us": limit.Whole} {
		h := NewHolder(region)
		h.ConsumeAtHome()
		whole := func(old *Snapshot) (*Snapshot, error) {
			b := Empty(old.Region()).Edit()
			b.SetRule("t", "tiny", &limit.Rule{Capacity: 1, Refill: 1, PeriodSeconds: 1, Revision: limit.Revision{Number: 1}})
			b.SetRule("t", "wide", &limit.Rule{Capacity: 100, Refill: 1, PeriodSeconds: 1, Revision: limit.Revision{Number: 1}})
			err := b.SetRegions([]Region{{Name: "eu", Base: 400_000, Floor: 20_000}, {Name: "us", Base: 600_000, Floor: 30_000}}, limit.Revision{Number: 1})
			return b.Build(), err
		}
		if err := h.Replace(whole); err != nil { // a whole load starts from an empty snapshot and still knows
			t.Fatal(err)
		}
		if m := h.Load().Lookup("t", "tiny"); m.Home != "us" || m.Base != want || m.Floor != 0 {
			t.Errorf("%s: tiny: home %q, base %d, floor %d", region, m.Home, m.Base, m.Floor)
		}
		if m := h.Load().Lookup("t", "wide"); m.Home != "" || m.Base == 0 || m.Floor == 0 {
			t.Errorf("%s: wide: home %q, base %d, floor %d", region, m.Home, m.Base, m.Floor)
		}
	}
}
