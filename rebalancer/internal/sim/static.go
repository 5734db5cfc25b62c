package sim

import (
	"math"
	"math/rand/v2"
	"time"

	"partidor.dev/partidor/shared/bucket"
	"partidor.dev/partidor/shared/limit"
	"partidor.dev/partidor/shared/rights"
)

// Static is the split as configured, never moved: what a deployment does without a rebalancer.
type Static struct {
	w      *World
	states []rights.State
}

// Start implements Strategy.
func (s *Static) Start(w *World) {
	s.w = w
	s.states = nil
	for _, base := range w.scenario.base() {
		numbers := bucket.NumbersOf(&w.scenario.Rule, base)
		s.states = append(s.states, rights.New(numbers, 0, 1, w.clock()))
	}
}

// Step implements Strategy.
func (s *Static) Step() {}

// Admit implements Strategy.
func (s *Static) Admit(region, n int) (admitted, waiting int) {
	return takeUpTo(&s.states[region], s.w.clock(), n), 0
}

// Shares implements Strategy.
func (s *Static) Shares() []limit.Share { return sharesOf(s.states) }

func sharesOf(states []rights.State) []limit.Share {
	out := make([]limit.Share, len(states))
	for i := range states {
		out[i] = states[i].Share
	}
	return out
}

// takeUpTo is n requests of one token at one moment, one after the other: as many pass as there are whole tokens.
func takeUpTo(s *rights.State, now time.Time, n int) int {
	if s.Take(now, int64(n)) {
		return n
	}
	whole := int64(math.Floor(s.Tokens + tolerance))
	if whole <= 0 || !s.Take(now, whole) {
		return 0
	}
	return int(whole)
}

// Proportional is what is usually built first: every five minutes each region's slice is rewritten in proportion to the
// load it saw, at least 5 %, and every region picks the new value up by itself within five seconds. It breaks the limit
// while values differ between regions, and keeps breaking it while a region cannot be reached.
type Proportional struct {
	Static
	counts []float64
	random *rand.Rand
}

const (
	proportionalEvery = 5 * time.Minute
	proportionalLeast = 0.05
)

// Start implements Strategy.
func (p *Proportional) Start(w *World) {
	p.Static.Start(w)
	p.counts = make([]float64, len(p.states))
	p.random = w.random(0)
	w.every(w.control(), proportionalEvery, proportionalEvery, p.rewrite)
}

// Admit implements Strategy.
func (p *Proportional) Admit(region, n int) (admitted, waiting int) {
	if p.w.network.link(p.w.control(), region) {
		p.counts[region] += float64(n)
	}
	return p.Static.Admit(region, n)
}

func (p *Proportional) rewrite() {
	sum := 0.0
	for _, c := range p.counts {
		sum += c
	}
	if sum == 0 {
		return
	}
	weights := make([]float64, len(p.counts))
	for i, c := range p.counts {
		weights[i] = max(proportionalLeast, c/sum)
		p.counts[i] = 0
	}
	for i, share := range limit.Apportion(weights) {
		p.w.network.messages += 2
		p.w.network.after(time.Duration((0.5+4.5*p.random.Float64())*float64(time.Second)), func() {
			if !p.w.network.link(p.w.control(), i) {
				return
			}
			s := &p.states[i]
			s.Settle(p.w.clock())
			p.w.moved += max(0, share-s.Share)
			s.Share = share
			s.Tokens = min(s.Tokens, s.Effective())
		})
	}
}
