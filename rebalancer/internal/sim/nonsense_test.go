package sim

import (
	"math/rand/v2"
	"testing"
	"time"

	"partidor.dev/partidor/shared/limit"
	"partidor.dev/partidor/shared/rights/agent"
)

// nonsense is partidor under a rebalancer that has lost its mind: every second each region is told to give anything to
// anybody, mostly under a new cycle, now and then under an old one or a former term.
type nonsense struct {
	Partidor
	random *rand.Rand
	next   time.Duration
}

func (s *nonsense) Step() {
	if s.w.now() < s.next {
		return
	}
	s.next += time.Second
	for _, n := range s.nodes {
		var moves []agent.Advice
		for range 3 {
			at := int64(s.next / time.Second)
			moves = append(moves, agent.Advice{
				Key: simKey, To: s.nodes[s.random.IntN(len(s.nodes))].name,
				Term: 1 + at/600 - s.random.Int64N(10)/9, Cycle: at - s.random.Int64N(10)/9*s.random.Int64N(100),
				Target: limit.Share(s.random.Int64N(2_000_000) - 500_000), Amount: limit.Share(s.random.Int64N(2_000_000) - 500_000),
			})
		}
		n.follow(moves)
	}
}

// Case L5, and DESIGN §6.2: an hour of nonsense, at twice the limit and then below it, costs churn and nothing else.
func TestNonsenseAdviceNeverExceedsTheLimit(t *testing.T) {
	for _, load := range []float64{2, 0.6} {
		s := world("nonsense", "", time.Hour, 50*time.Millisecond, 100, 200, thirdBase,
			Constant(load*60), Constant(load*30), Constant(load*10))
		strategy := &nonsense{Partidor: Partidor{policy: agent.DefaultPolicy()}, random: rand.New(rand.NewPCG(1, 2))}
		o := run(&s, 3, strategy, nil)
		if o.Depth >= 1 {
			t.Errorf("load %v: over-admission of %v tokens", load, o.Depth)
		}
		if o.Moved < 10 {
			t.Errorf("load %v: only %v of the whole moved: the nonsense was not heard", load, o.Moved)
		}
		if o.Efficiency() < 0.8 {
			t.Errorf("load %v: efficiency %v", load, o.Efficiency())
		}
	}
}

// Cases L22, P88: every region is flooded for a minute.
func TestAllRegionsFlooded(t *testing.T) {
	s := world("flood", "", time.Minute, 10*time.Millisecond, 100, 200, twoBase, Constant(1000), Constant(1000))
	o := worst(t, s, NamePartidor)
	if o.Depth >= 1 {
		t.Errorf("over-admission of %v tokens", o.Depth)
	}
	if perSeed := o.Admitted / 4; perSeed > 100*60+200 || perSeed < 100*60 {
		t.Errorf("%v admitted in a minute of 100/s with a burst of 200", perSeed)
	}
}

// Case L19: what one region hears half a minute late, it has not been given meanwhile: the giver's cut comes first.
func TestSlowNewsComesAfterTheCut(t *testing.T) {
	s := world("late", "", 4*time.Minute, 20*time.Millisecond, 100, 100, twoBase,
		Steps{{0, 90}, {time.Minute, 5}}, Steps{{0, 5}, {time.Minute, 90}})
	s.Network.OneWay = 30 * time.Second
	if o := worst(t, s, NamePartidor); o.Depth >= 1 {
		t.Errorf("over-admission of %v tokens", o.Depth)
	}
}
