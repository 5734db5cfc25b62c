package limit

import "testing"

func TestTinyLimitsHaveOneHome(t *testing.T) {
	split := Split{"us": 400_000, "eu": 400_000, "ap": 200_000}
	for _, c := range []struct {
		rule Rule
		eu   Share
		us   Share
	}{
		{Rule{Capacity: 1, Refill: 1, PeriodSeconds: 1}, Whole, 0},
		{Rule{Capacity: 5, Refill: 5, PeriodSeconds: 60}, Whole, 0},
		{Rule{Capacity: 5, Refill: 1000, PeriodSeconds: 1}, 400_000, 400_000},
		{Rule{Capacity: 2, Refill: 1000, PeriodSeconds: 1}, Whole, 0},
		{Rule{Capacity: 6, Refill: 1, PeriodSeconds: 1}, 400_000, 400_000},
		{Rule{Capacity: 1, Algorithm: FixedWindow, WindowSeconds: 60}, Whole, 0},
		{Rule{Capacity: 6, Algorithm: FixedWindow, WindowSeconds: 60}, 400_000, 400_000},
	} {
		sum := Share(0)
		for region := range split {
			sum += split.BaseOf(&c.rule, region)
		}
		if sum != Whole {
			t.Errorf("%+v: bases add up to %d", c.rule, sum)
		}
		if eu, us := split.BaseOf(&c.rule, "eu"), split.BaseOf(&c.rule, "us"); eu != c.eu || us != c.us {
			t.Errorf("%+v: eu %d, us %d, want %d and %d", c.rule, eu, us, c.eu, c.us)
		}
	}
	if alone := (Split{"eu": Whole}); alone.BaseOf(&Rule{Capacity: 1, Refill: 1, PeriodSeconds: 1}, "eu") != Whole {
		t.Error("a single region does not hold everything")
	}
}

// From one split to another, by way of the smaller of both for every region: at no time do two neighbouring stages, which
// regions may follow side by side, name different homes.
func TestHomeWhileTheBaseSplitChanges(t *testing.T) {
	for _, tt := range []struct {
		old, between, next Split
		home               string // in between
	}{
		{Split{"eu": 300_000, "us": 700_000}, Split{"eu": 300_000, "us": 300_000}, Split{"eu": 700_000, "us": 300_000}, ""},
		{Split{"eu": 700_000, "us": 300_000}, Split{"eu": 600_000, "us": 300_000}, Split{"eu": 600_000, "us": 400_000}, "eu"},
		{Split{"eu": 500_000, "us": 500_000}, Split{"eu": 400_000, "us": 500_000}, Split{"eu": 400_000, "us": 600_000}, ""},
	} {
		if got := tt.between.Home(); got != tt.home {
			t.Errorf("%v: home %q, want %q", tt.between, got, tt.home)
		}
		for _, side := range []Split{tt.old, tt.next} {
			if got := tt.between.Home(); got != "" && got != side.Home() {
				t.Errorf("%v beside %v: homes %q and %q", tt.between, side, got, side.Home())
			}
		}
	}
}
