package agent

import (
	"math"
	"slices"
	"time"

	"partidor.dev/partidor/shared/rights"
)

const (
	// askAtLeast is the shortest time between two asks of a key, askEvery how soon a region that knows of spare tokens asks
	// again; asks that bring nothing back off to askSlowest.
	askAtLeast = 50 * time.Millisecond
	askEvery   = 100 * time.Millisecond
	askFresh   = 250 * time.Millisecond
	askSlowest = 2 * time.Second
	// spareFresh is how long what a peer said of its spare tokens is believed.
	spareFresh = time.Second
	// askPeers is how many peers one ask goes to at most.
	askPeers = 3
	// fillLife is how long an ask for what would overflow stands.
	fillLife = 1200 * time.Millisecond
)

// consider looks at a key after a report: will its bucket run dry, or is it merely not full?
func (a *Agent) consider(now time.Time, k *key) {
	p := &a.policy
	if !p.FastLoop || !k.level.known || k.level.phase != rights.Active || !a.lends(k) {
		return
	}
	d, tokens := &k.demand, k.tokens(now)
	expect := max(d.fast, d.surge())
	if d.refused >= 1 {
		a.ask(now, k, true)
	}
	small := k.small(p, a.trip)
	ahead := p.Ahead.Seconds()
	low := 0.0
	if expected := expect * ahead; expected >= 1 {
		low = p.Deviations * math.Sqrt(expected)
	}
	if expect > 0.05 && tokens+(k.level.rate-expect)*ahead < low && (!small || expect > k.level.rate) {
		a.ask(now, k, false)
	}
	e, q := k.level.effective, k.quantum(p)
	drain := max(0, expect-k.level.rate)
	if !small && d.fast > 0.05 && tokens < p.FillBelow*e && e-tokens > 2*q && now.Sub(k.asking.lastFill) > p.FillEvery && a.budget(now, k).plenty() {
		k.asking.lastFill = now
		// The room grows by what the demand drains while the ask stands.
		a.post(now, k, Ask{Fill: e - tokens + drain*fillLife.Seconds(), Life: fillLife})
	}
}

// ask asks the peers for what the region lacks, unless a standing ask is still being served.
func (a *Agent) ask(now time.Time, k *key, urgent bool) {
	p, d, s := &a.policy, &k.demand, &k.asking
	since := now.Sub(s.last)
	if since < askAtLeast {
		return
	}
	known := false
	for i := range k.peers {
		q := &k.peers[i]
		known = known || now.Sub(q.spareAt) < spareFresh && q.spare >= k.quantum(p)
	}
	if s.got < 0.7*s.wanted && !(known && since > askEvery) && since < s.gap {
		return
	}
	if s.got < 0.05*s.wanted && !known {
		s.gap = min(askSlowest, s.gap*8/5)
	}
	tokens, rate, horizon := k.tokens(now), k.level.rate, p.LoanHorizon.Seconds()
	room := max(k.level.effective-tokens, 0)
	expect := max(d.fast, d.surge())
	if urgent {
		expect = max(expect, min(d.now, 4*d.fast+0.1*k.level.wholeRate))
	}
	need := max(0, expect-rate)*horizon + p.Deviations*math.Sqrt(expect*horizon) - tokens
	if urgent {
		need = max(need, math.Ceil(d.refused)-tokens)
	}
	total := need
	need = max(0, min(need, room))
	want := Ask{Urgent: urgent, Need: need, Life: max(500*time.Millisecond, s.gap) * 3 / 2}
	if total > need {
		want.Flow = min((total-need)/horizon, max(0, expect-rate)*1.1)
	}
	if more := d.slow + math.Sqrt(d.slow) - rate; d.slow > rate && more > p.ShareStep*k.level.wholeRate {
		want.Rate = more
	}
	if want.Need < 1e-3 && want.Rate <= 0 {
		return
	}
	s.last, s.wanted, s.got = now, want.Need+want.Flow*0.3, 0
	d.refused = 0
	a.post(now, k, want)
}

// post divides an ask over the few peers that are known, or hoped, to have most to spare, by how much that is.
func (a *Agent) post(now time.Time, k *key, want Ask) {
	weights := make([]float64, len(k.peers))
	for i := range k.peers {
		q := &k.peers[i]
		weights[i] = 0.02 * k.level.whole
		if age := now.Sub(q.spareAt); age < 2*spareFresh {
			weights[i] = max(q.spare, 0.002*k.level.whole)
			if age < spareFresh && want.Rate <= 0 && q.spare < k.quantum(&a.policy) {
				weights[i] = 0 // it has just said that it has nothing
			}
		}
	}
	chosen := make([]int, 0, askPeers)
	sum := 0.0
	for range min(askPeers, len(k.peers)) {
		best := -1
		for i, w := range weights {
			if w > 0 && !slices.Contains(chosen, i) && (best < 0 || w > weights[best]) {
				best = i
			}
		}
		if best >= 0 {
			chosen = append(chosen, best)
			sum += weights[best]
		}
	}
	for _, i := range chosen {
		if !a.spend(now, k, askMessages) {
			return
		}
		part := weights[i] / sum
		one := want
		one.Key, one.From, one.To = k.id, a.region, k.peers[i].region
		one.Flow, one.Rate, one.Fill = want.Flow*part, want.Rate*part, want.Fill*part
		if want.Need > 2 {
			one.Need = want.Need * part
		}
		one.Spare = k.spare(now, &a.policy)
		a.out.Asks = append(a.out.Asks, one)
	}
}
