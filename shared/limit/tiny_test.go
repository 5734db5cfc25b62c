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
		{Rule{Capacity: 6, Refill: 1, PeriodSeconds: 1}, 400_000, 400_000},
		{Rule{Capacity: 1, Algorithm: FixedWindow, WindowSeconds: 60}, 400_000, 400_000},
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
