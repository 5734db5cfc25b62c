package sim

import (
	"math/rand/v2"
	"time"

	"partidor.dev/partidor/shared/limit"
)

// epoch is the wall time of the beginning of every run.
var epoch = time.Unix(1_800_000_000, 0).UTC()

// World is one running experiment on one key.
type World struct {
	scenario *Scenario
	seed     uint64
	network  *network
	checker  *checker
	// moved is the share that changed hands so far, for churn.
	moved limit.Share
	plot  *recorder
}

// Strategy is a way to share the limit. Its methods are called from one goroutine.
type Strategy interface {
	// Start is called once, at time 0.
	Start(w *World)
	// Step is called before the arrivals of every step.
	Step()
	// Admit decides n requests that reach a region now and returns how many pass at once. Requests it keeps waiting it
	// reports later through World.serveLater or refuseLater.
	Admit(region, n int) (admitted, waiting int)
	// Shares in force per region, for plots.
	Shares() []limit.Share
}

func (w *World) now() time.Duration       { return w.network.now }
func (w *World) clock() time.Time         { return epoch.Add(w.network.now) }
func (w *World) control() int             { return len(w.scenario.Regions) }
func (w *World) send(a, b int, fn func()) { w.network.send(a, b, fn) }
func (w *World) random(stream uint64) *rand.Rand {
	return rand.New(rand.NewPCG(w.seed, streamStrategy+stream))
}

// every runs fn at first and then each interval, while node is alive.
func (w *World) every(node int, first, interval time.Duration, fn func()) {
	var tick func()
	tick = func() {
		if w.network.up(node) {
			fn()
		}
		w.network.after(interval, tick)
	}
	w.network.after(first, tick)
}

// serveLater lets n requests that were kept waiting through; refuseLater turns them away. Tokens are charged by charge
// where and when they are taken.
func (w *World) serveLater(region, n int) { w.checker.serve(region, n) }
func (w *World) refuseLater(n int)        { w.checker.refuse(n) }
func (w *World) charge(n int)             { w.checker.charge(w.network.now, n) }

// run plays a whole scenario.
func run(s *Scenario, seed uint64, strategy Strategy, plot *recorder) Outcome {
	w := &World{scenario: s, seed: seed, network: newNetwork(s, seed), checker: newChecker(s), plot: plot}
	arrivals := rand.New(rand.NewPCG(seed, streamArrivals))
	loads := make([]func(time.Duration) float64, len(s.Regions))
	for i := range s.Regions {
		loads[i] = s.Regions[i].Traffic.Load(seed, i, s.Duration)
	}
	strategy.Start(w)
	k := len(s.Regions)
	counts := make([]int, k)
	for step := 0; ; step++ {
		t := time.Duration(step) * s.Step
		if t >= s.Duration {
			break
		}
		w.network.advance(t)
		strategy.Step()
		w.checker.refill(t)
		for i := range counts {
			rate := loads[i](t)
			counts[i] = poisson(arrivals, rate*s.Step.Seconds())
			plot.offer(i, counts[i])
		}
		for o := range k {
			if i := (o + step) % k; counts[i] > 0 { // no region is always first
				w.arrive(strategy, i, counts[i])
			}
		}
		plot.step(t, strategy)
	}
	w.checker.refill(s.Duration)
	return w.outcome()
}

func (w *World) arrive(strategy Strategy, region, n int) {
	w.checker.arrive(region, n)
	admitted, waiting := 0, 0
	if w.network.up(region) {
		admitted, waiting = strategy.Admit(region, n)
	}
	w.charge(admitted)
	w.checker.serve(region, admitted)
	w.checker.refuse(n - admitted - waiting)
	w.plot.admit(region, admitted)
}

// Outcome is what a run measured. Counts are in tokens.
type Outcome struct {
	Offered  float64 `json:"offered"`
	Admitted float64 `json:"admitted"`
	Ideal    float64 `json:"ideal"`
	// CalmOffered and CalmRefused are of the seconds in which one ideal bucket would have refused nobody.
	CalmOffered float64 `json:"calm_offered"`
	CalmRefused float64 `json:"calm_refused"`
	// Depth is how far the admissions of all regions ever exceeded the limit.
	Depth    float64 `json:"over_admission"`
	Fairness float64 `json:"fairness"`
	// Moved is share that changed hands, as a multiple of the whole; Messages between regions and control plane.
	Moved    float64 `json:"moved"`
	Messages float64 `json:"messages"`
	Hours    float64 `json:"hours"`
	Keys     int     `json:"keys"`
}

func (w *World) outcome() Outcome {
	c := w.checker
	return Outcome{
		Offered: c.offered, Admitted: c.admitted, Ideal: c.idealAdmitted,
		CalmOffered: c.calmOffered, CalmRefused: c.calmRefused,
		Depth: c.depth, Fairness: c.fairness(),
		Moved: float64(w.moved) / float64(limit.Whole), Messages: float64(w.network.messages),
		Hours: w.scenario.Duration.Hours(), Keys: 1,
	}
}

// add joins the outcomes of several keys.
func (o Outcome) add(p Outcome) Outcome {
	if o.Keys == 0 {
		return p
	}
	o.Offered += p.Offered
	o.Admitted += p.Admitted
	o.Ideal += p.Ideal
	o.CalmOffered += p.CalmOffered
	o.CalmRefused += p.CalmRefused
	o.Depth = max(o.Depth, p.Depth)
	o.Fairness = min(o.Fairness, p.Fairness)
	o.Moved += p.Moved
	o.Messages += p.Messages
	o.Hours += p.Hours
	o.Keys += p.Keys
	return o
}

// Efficiency is what was admitted relative to one ideal bucket.
func (o Outcome) Efficiency() float64 { return ratio(o.Admitted, o.Ideal, 1) }

// RefusedWithRoom is the part of the load that was refused while the world had room.
func (o Outcome) RefusedWithRoom() float64 { return ratio(o.CalmRefused, o.CalmOffered, 0) }

// MessagesPerMinute is per key.
func (o Outcome) MessagesPerMinute() float64 { return ratio(o.Messages, o.Hours*60, 0) }

// Churn is how many times the whole limit changed hands per hour and key.
func (o Outcome) Churn() float64 { return ratio(o.Moved, o.Hours, 0) }

func ratio(a, b, otherwise float64) float64 {
	if b == 0 {
		return otherwise
	}
	return a / b
}
