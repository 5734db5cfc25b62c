package proxy

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"partidor.dev/partidor/gateway/internal/config"
)

func newTargets(t *testing.T, b config.Breaker, weights ...int) []*target {
	t.Helper()
	var list []*target
	for i, w := range weights {
		tt, err := newTarget(config.Target{URL: "http://" + string(rune('a'+i)) + "/", Weight: w}, b)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, tt)
	}
	return list
}

func defaultBreaker() config.Breaker { return config.Breaker{Failures: 3, Window: 3, Delay: time.Hour} }

func picks(p picker, n int) (names string) {
	for range n {
		t := p.pick(nil)
		if t == nil {
			names += "-"
			continue
		}
		names += t.url.Host
		t.report(succeeded)
		t.release()
	}
	return names
}

// Weights are spread evenly, not in blocks.
func TestTurns(t *testing.T) {
	if d := cmp.Diff([]int{0, 1, 0, 2, 0}, turns(newTargets(t, defaultBreaker(), 3, 1, 1))); d != "" {
		t.Error(d)
	}
}

func TestInTurn(t *testing.T) {
	list := newTargets(t, defaultBreaker(), 2, 1)
	p := newPicker(config.BalanceRoundRobin, list)
	counts := map[rune]int{}
	for _, c := range picks(p, 300) {
		counts[c]++
	}
	if d := cmp.Diff(map[rune]int{'a': 200, 'b': 100}, counts); d != "" {
		t.Error(d)
	}
	list[0].down.Store(true)
	if got := picks(p, 4); got != "bbbb" {
		t.Errorf("with a down: %s", got)
	}
	list[1].down.Store(true)
	if got := picks(p, 30); !containsBoth(got) {
		t.Errorf("with all down, all are tried: %s", got)
	}
}

func containsBoth(s string) bool {
	seen := map[rune]bool{}
	for _, c := range s {
		seen[c] = true
	}
	return seen['a'] && seen['b'] && !seen['-']
}

func TestLeastLoaded(t *testing.T) {
	list := newTargets(t, defaultBreaker(), 2, 1)
	p := newPicker(config.BalanceLeastLoaded, list)
	counts := map[string]int{}
	for range 30 { // All stay in flight.
		counts[p.pick(nil).url.Host]++
	}
	if d := cmp.Diff(map[string]int{"a": 20, "b": 10}, counts); d != "" {
		t.Error(d)
	}
	if got := p.pick(list[0]).url.Host; got != "b" {
		t.Errorf("skipping a: %s", got)
	}
}

// A target that fails is left alone until its breaker's delay is over; with all breakers open there is no target.
func TestBreakerTakesTargetsOut(t *testing.T) {
	for _, balance := range []string{config.BalanceRoundRobin, config.BalanceLeastLoaded} {
		list := newTargets(t, defaultBreaker(), 1, 1)
		p := newPicker(balance, list)
		fail := func(t *target) {
			for range 3 {
				if t.acquire() {
					t.report(failed)
					t.release()
				}
			}
		}
		fail(list[0])
		if got := picks(p, 4); got != "bbbb" {
			t.Errorf("%s with a open: %s", balance, got)
		}
		fail(list[1])
		if got := picks(p, 2); got != "--" {
			t.Errorf("%s with both open: %s", balance, got)
		}
		list[0].breaker.HalfOpen()
		if got := picks(p, 3); got != "aaa" {
			t.Errorf("%s after a successful trial: %s", balance, got)
		}
	}
}

// What nobody knows does not count, but gives a trial's permit back.
func TestUnknownResults(t *testing.T) {
	list := newTargets(t, defaultBreaker(), 1)
	for range 100 {
		if !list[0].acquire() {
			t.Fatal("clients that left opened the breaker")
		}
		list[0].report(unknown)
		list[0].release()
	}
	list[0].breaker.HalfOpen()
	if !list[0].acquire() {
		t.Fatal("no permit on trial")
	}
	list[0].report(unknown)
	if !list[0].breaker.IsOpen() {
		t.Errorf("after an unknown trial: %s", list[0].breaker.State())
	}
}

func TestStreak(t *testing.T) {
	s := streak{healthy: 2, unhealthy: 3, up: true}
	for i, step := range []struct{ ok, up bool }{
		{false, true}, {false, true}, {true, true}, {false, true}, {false, true}, {false, false},
		{true, false}, {false, false}, {true, false}, {true, true}, {false, true},
	} {
		if up := s.note(step.ok); up != step.up {
			t.Errorf("step %d: up %v, want %v", i, up, step.up)
		}
	}
}

func TestRetryBudget(t *testing.T) {
	r := newRetry(config.Retry{Attempts: 2, Budget: 0.2}, nil)
	for range 10 {
		if !r.budget.spend() {
			t.Fatal("the first savings are too small")
		}
	}
	if r.budget.spend() {
		t.Fatal("more was spent than saved")
	}
	spent := 0
	for range 100 {
		r.budget.earn()
		if r.budget.spend() {
			spent++
		}
	}
	if spent != 20 {
		t.Errorf("%d repeats of 100 requests, want 20", spent)
	}
}

func BenchmarkPick(b *testing.B) {
	for _, balance := range []string{config.BalanceRoundRobin, config.BalanceLeastLoaded} {
		b.Run(balance, func(b *testing.B) {
			var list []*target
			for range 4 {
				t, err := newTarget(config.Target{URL: "http://a", Weight: 1}, defaultBreaker())
				if err != nil {
					b.Fatal(err)
				}
				list = append(list, t)
			}
			p := newPicker(balance, list)
			b.ReportAllocs()
			for b.Loop() {
				t := p.pick(nil)
				t.report(succeeded)
				t.release()
			}
		})
	}
}
