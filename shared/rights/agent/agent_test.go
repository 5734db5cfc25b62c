package agent

import (
	"testing"
	"time"

	"partidor.dev/partidor/shared/limit"
)

// TestFastLoop runs traffic that the base split does not fit, and wants nearly everything admitted that one bucket for the
// whole world would admit, nothing more, and few refusals while the world has room.
func TestFastLoop(t *testing.T) {
	third := []limit.Share{333_334, 333_333, 333_333}
	for _, c := range []struct {
		name       string
		rule       limit.Rule
		base       []limit.Share
		efficiency float64
		wrongful   float64
		rate       func(i int, at time.Duration) float64
	}{
		{"real 45/55, base 70/30", limit.Rule{Capacity: 1000, Refill: 1000, PeriodSeconds: 1}, []limit.Share{700_000, 300_000}, 0.999, 0.0005,
			func(i int, _ time.Duration) float64 { return 950 * []float64{.45, .55}[i] }},
		{"flash crowd", limit.Rule{Capacity: 1000, Refill: 1000, PeriodSeconds: 1}, third, 0.999, 0.0005,
			func(i int, at time.Duration) float64 {
				if i == 1 && at > 20*time.Second {
					return 80 * (1 + 9*min(1, (at.Seconds()-20)/30))
				}
				return 80
			}},
		{"ping-pong 20 s", limit.Rule{Capacity: 1000, Refill: 1000, PeriodSeconds: 1}, []limit.Share{500_000, 500_000}, 0.995, 0.005,
			func(i int, at time.Duration) float64 {
				if (int(at.Seconds()/10)%2 == 0) == (i == 0) {
					return 880
				}
				return 20
			}},
		{"overload", limit.Rule{Capacity: 1000, Refill: 1000, PeriodSeconds: 1}, third, 0.999, 1,
			func(i int, _ time.Duration) float64 { return 2000 * []float64{.6, .3, .1}[i] }},
		{"capacity of a fifth of a second", limit.Rule{Capacity: 200, Refill: 1000, PeriodSeconds: 1}, []limit.Share{700_000, 300_000}, 0.999, 1,
			func(i int, _ time.Duration) float64 { return 950 * []float64{.7, .3}[i] }},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(7, c.rule, c.base, 40*time.Millisecond, DefaultPolicy())
			w.run(120*time.Second, c.rate)
			refused := float64(w.wrongful) / float64(max(1, w.calm))
			perMinute := float64(w.messages) / 2
			t.Logf("efficiency %.3f %%, refused while there was room %.3f %%, %.0f messages per minute, lowest level %.2f, share %v",
				100*w.efficiency(), 100*refused, perMinute, w.lowest, []limit.Share{w.states[0].Share, w.states[1].Share})
			if w.lowest < -1 {
				t.Errorf("over-admission by %g", -w.lowest)
			}
			if w.efficiency() < c.efficiency || refused > c.wrongful || perMinute > 1500 {
				t.Errorf("want efficiency ≥ %g, refused ≤ %g, messages ≤ 1500", c.efficiency, c.wrongful)
			}
		})
	}
}
