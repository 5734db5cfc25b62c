package plan

import (
	"testing"

	"partidor.dev/partidor/shared/limit"
)

func TestWaste(t *testing.T) {
	rule := &limit.Rule{Capacity: 200, Refill: 100, PeriodSeconds: 1}
	heard := func(offered, refused float64) Load { return Load{Known: true, Offered: offered, Refused: refused} }
	for _, tc := range []struct {
		name  string
		rule  *limit.Rule
		loads []Load
		want  float64
	}{
		{"nobody refused", rule, []Load{heard(60, 0), heard(20, 0)}, 0},
		{"refused in one, room in the other", rule, []Load{heard(90, 20), heard(10, 0)}, 20},
		{"refused more than there was room", rule, []Load{heard(150, 80), heard(10, 0)}, 20},
		{"the world is full", rule, []Load{heard(150, 80), heard(40, 10)}, 0},
		{"above the rate, from stored tokens", rule, []Load{heard(200, 80), heard(10, 0)}, 0},
		{"one region is silent", rule, []Load{heard(90, 20), {Offered: 10}}, 0},
		{"no rule", nil, []Load{heard(90, 20), heard(10, 0)}, 0},
	} {
		if got := Waste(&Demand{Rule: tc.rule, Loads: tc.loads}); got != tc.want {
			t.Errorf("%s: %g, want %g", tc.name, got, tc.want)
		}
	}
}
