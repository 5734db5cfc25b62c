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
		// Two of the dearest requests for each of three regions, and one token less.
		{Rule{Capacity: 60, Refill: 100, PeriodSeconds: 1, MaxCost: 10}, 400_000, 400_000},
		{Rule{Capacity: 59, Refill: 100, PeriodSeconds: 1, MaxCost: 10}, Whole, 0},
		{Rule{Capacity: 59, Refill: 101, PeriodSeconds: 1, MaxCost: 10}, 400_000, 400_000}, // too many requests for a home
		{Rule{Capacity: 30, Refill: 101, PeriodSeconds: 1, MaxCost: 10}, Whole, 0},         // but three regions cannot share three
		{Rule{Capacity: 59, Refill: 5, PeriodSeconds: 60, MaxCost: 1}, 400_000, 400_000},
		{Rule{Capacity: 59, Algorithm: FixedWindow, WindowSeconds: 60, MaxCost: 10}, Whole, 0},
		{Rule{Capacity: MaxTokens, Refill: MaxTokens, PeriodSeconds: MaxPeriodSeconds, MaxCost: MaxTokens}, Whole, 0},
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

func TestStillLimitsKeepTheirShares(t *testing.T) {
	for _, c := range []struct {
		name    string
		rule    Rule
		regions int
		want    bool
	}{
		{"tiny: it has a home", Rule{Capacity: 5, Refill: 10, PeriodSeconds: 1}, 3, false},
		{"as small, but too fast for a home", Rule{Capacity: 5, Refill: 11, PeriodSeconds: 1}, 3, true},
		{"two tokens a region", Rule{Capacity: 6, Refill: 11, PeriodSeconds: 1}, 3, false},
		{"a burst of 10 ms", Rule{Capacity: 10, Refill: 1000, PeriodSeconds: 1}, 2, true},
		{"a burst of 11 ms", Rule{Capacity: 11, Refill: 1000, PeriodSeconds: 1}, 2, false},
		{"a window", Rule{Capacity: 7, Algorithm: FixedWindow, WindowSeconds: 60}, 3, false},
		{"shards", Rule{Capacity: 9, Refill: 1000, PeriodSeconds: 1, Shards: 2}, 2, false},
		{"two of the dearest requests a region", Rule{Capacity: 60, Refill: 101, PeriodSeconds: 1, MaxCost: 10}, 3, false},
		{"one token less", Rule{Capacity: 59, Refill: 101, PeriodSeconds: 1, MaxCost: 10}, 3, true},
		{"one region", Rule{Capacity: 100, Refill: 1000, PeriodSeconds: 1}, 1, false},
	} {
		if got := c.rule.Still(c.regions); got != c.want {
			t.Errorf("%s: still %v, want %v", c.name, got, c.want)
		}
	}
}
