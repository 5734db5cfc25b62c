package admission

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"
)

type passed struct{ sent, received time.Duration }

// brute is the definition: over every interval between a sending and a receipt, what was certainly decided in it minus
// what was refilled.
func brute(rate float64, all []passed) float64 {
	deep := 0.0
	for _, a := range all {
		for _, b := range all {
			n := 0
			for _, p := range all {
				if p.sent >= a.sent && p.received <= b.received {
					n++
				}
			}
			if b.received >= a.sent {
				deep = max(deep, float64(n)-rate*(b.received-a.sent).Seconds())
			}
		}
	}
	return deep
}

func TestCheckerIsTheDefinition(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rate := float64(rapid.IntRange(1, 200).Draw(t, "rate"))
		c := NewChecker(10, rate)
		var all []passed
		now := time.Duration(0)
		for range rapid.IntRange(1, 40).Draw(t, "n") {
			now += time.Duration(rapid.IntRange(0, 300).Draw(t, "gap")) * edge
			p := passed{max(0, now-time.Duration(rapid.IntRange(0, 100).Draw(t, "took"))*edge), now}
			all = append(all, p)
			c.Admitted(1, p.sent, p.received)
		}
		if want := brute(rate, all); math.Abs(c.Deepest()-want) > 1e-6 {
			t.Fatalf("deepest draw %v, by definition %v", c.Deepest(), want)
		}
	})
}

// A true bucket is never accused, however late its answers arrive; one that holds a single token more always is when the
// answers come at once.
func TestCheckerAccusesOnlyTheGuilty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		capacity, rate := float64(rapid.IntRange(1, 50).Draw(t, "capacity")), float64(rapid.IntRange(1, 100).Draw(t, "rate"))
		lateness := time.Duration(rapid.IntRange(0, 50).Draw(t, "lateness")) * edge
		extra := float64(rapid.IntRange(0, 1).Draw(t, "extra"))
		c := NewChecker(capacity, rate)
		tokens, last := capacity+extra, time.Duration(0)
		for now := time.Duration(0); now < 3*time.Second; now += 5 * edge {
			tokens = min(capacity+extra, tokens+rate*(now-last).Seconds())
			last = now
			for ; tokens >= 1; tokens-- {
				c.Admitted(1, max(0, now-lateness), now+lateness)
			}
		}
		switch excess := c.Excess(); {
		case extra == 0 && excess > 1e-6:
			t.Fatalf("accused of %v tokens too many", excess)
		case extra == 1 && lateness == 0 && excess < 1-1e-6:
			t.Fatalf("one token too many goes unseen: %v", excess)
		}
	})
}
