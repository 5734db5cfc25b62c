package agent

import (
	"testing"
	"time"

	"partidor.dev/partidor/shared/limit"
)

var hundred = limit.Rule{Capacity: 200, Refill: 100, PeriodSeconds: 1}

// within checks that what was admitted everywhere stays within one bucket of the whole limit, to a token.
func within(t *testing.T, w *world) {
	t.Helper()
	if w.lowest < -1 {
		t.Errorf("admitted %g more than the limit", -w.lowest)
	}
	var sum limit.Share
	for i := range w.states {
		s := &w.states[i]
		if s.Share < s.Floor {
			t.Errorf("%s is left with %d, below its floor of %d", w.names[i], s.Share, s.Floor)
		}
		sum += s.Share
	}
	if sum > limit.Whole {
		t.Errorf("shares add up to %d", sum)
	}
}

// TestSplitRewrittenEverySecond: at ten times the limit, advice turns 70/30 into 69/31 and back each second. No rewrite brings a
// burst.
func TestSplitRewrittenEverySecond(t *testing.T) {
	w := newWorld(1, hundred, []limit.Share{700_000, 300_000}, 40*time.Millisecond, DefaultPolicy())
	for cycle := int64(1); cycle <= 60; cycle++ {
		from, to, target := 0, "b", limit.Share(690_000)
		if cycle%2 == 0 {
			from, to, target = 1, "a", 300_000
		}
		w.agents[from].Advise(w.now, []Advice{{Key: testKey, To: to, Term: 1, Cycle: cycle, Target: target, Amount: 10_000}})
		w.drain(from)
		w.run(time.Second, func(int, time.Duration) float64 { return 500 })
	}
	within(t, w)
	if most := 100*60 + 200; w.admitted > most {
		t.Errorf("%d are admitted, at most %d", w.admitted, most)
	}
}

// TestNonsenseAdvice: a rebalancer that says anything, with any term, for ten minutes. Shares move to and fro; nothing is
// exceeded, no floor is touched.
func TestNonsenseAdvice(t *testing.T) {
	w := newWorld(2, hundred, []limit.Share{500_000, 300_000, 200_000}, 40*time.Millisecond, DefaultPolicy())
	for range 600 {
		for i := range w.agents {
			w.agents[i].Advise(w.now, []Advice{{
				Key: testKey, To: []string{"a", "b", "c", "nowhere", ""}[w.rng.IntN(5)], Term: w.rng.Int64N(5), Cycle: w.rng.Int64N(1000),
				Target: limit.Share(w.rng.Int64N(2_000_000) - 500_000), Amount: limit.Share(w.rng.Int64N(3_000_000) - 1_000_000),
			}})
			w.drain(i)
		}
		w.run(time.Second, func(i int, _ time.Duration) float64 { return []float64{60, 60, 20}[i] })
	}
	within(t, w)
}

// TestEveryRegionAtFullLimit: 200/s in each of two regions for a minute, the limit is 100/s.
func TestEveryRegionAtFullLimit(t *testing.T) {
	w := newWorld(3, hundred, []limit.Share{700_000, 300_000}, 40*time.Millisecond, DefaultPolicy())
	w.run(time.Minute, func(int, time.Duration) float64 { return 200 })
	within(t, w)
	if w.admitted > 100*60+200 || float64(w.admitted) < 0.99*(100*60+200) {
		t.Errorf("%d are admitted, at most 6200, and hardly less", w.admitted)
	}
}

// TestStormElsewhere: one region is offered ten times the limit and ignores refusals, the other 50/s of the 70/s that are its
// share. The quiet one goes on undisturbed, whatever the other asks for.
func TestStormElsewhere(t *testing.T) {
	w := newWorld(4, hundred, []limit.Share{700_000, 300_000}, 40*time.Millisecond, DefaultPolicy())
	w.run(20*time.Second, func(i int, _ time.Duration) float64 { return []float64{50, 0}[i] })
	w.offeredTo, w.refusedAt = make([]int, 2), make([]int, 2)
	w.run(time.Minute, func(i int, _ time.Duration) float64 { return []float64{50, 1000}[i] })
	within(t, w)
	if part := float64(w.refusedAt[0]) / float64(w.offeredTo[0]); part > 0.02 { // one bucket for all would refuse nine in ten
		t.Errorf("%.2f %% of the quiet region's requests are refused", 100*part)
	}
}

// TestControlPlaneGone: without any advice, and without traffic, shares stay as they are for an hour.
func TestControlPlaneGone(t *testing.T) {
	w := newWorld(5, hundred, []limit.Share{700_000, 300_000}, 40*time.Millisecond, DefaultPolicy())
	w.agents[0].Advise(w.now, []Advice{{Key: testKey, To: "b", Term: 1, Cycle: 1, Target: 400_000, Amount: 300_000}})
	w.drain(0)
	w.run(time.Hour, func(int, time.Duration) float64 { return 0 })
	if a, b := w.states[0].Share, w.states[1].Share; a != 400_000 || b != 600_000 {
		t.Errorf("shares are %d and %d", a, b)
	}
}

// TestDecreaseComesFirst: the message that carries a move is late by half a minute. All that time the giver has less and the
// receiver not yet more.
func TestDecreaseComesFirst(t *testing.T) {
	w := newWorld(6, hundred, []limit.Share{700_000, 300_000}, 30*time.Second, Policy{Resend: time.Hour, ResendMax: time.Hour, IdleAfter: time.Hour})
	w.loss = 0
	w.agents[0].Advise(w.now, []Advice{{Key: testKey, To: "b", Term: 1, Cycle: 1, Target: 500_000, Amount: 200_000}})
	w.drain(0)
	w.run(20*time.Second, func(int, time.Duration) float64 { return 300 })
	if a, b := w.states[0].Share, w.states[1].Share; a != 500_000 || b != 300_000 {
		t.Errorf("while the message travels, shares are %d and %d", a, b)
	}
	w.run(30*time.Second, func(int, time.Duration) float64 { return 300 })
	within(t, w)
	if b := w.states[1].Share; b != 500_000 {
		t.Errorf("after it arrived, the receiver has %d", b)
	}
}
