package collect

import (
	"time"

	"partidor.dev/partidor/rebalancer/internal/plan"
	"partidor.dev/partidor/shared/limit"
	"partidor.dev/partidor/shared/wire"
)

// counts of tokens in one window.
type counts struct{ offered, refused float64 }

// load is one key in one region: two open windows, the last closed one, and the estimate over all closed ones.
//
//	time ──▶  … closed │ previous │ current
//	                   └ reports may still fill both
type load struct {
	estimate plan.Estimate
	// window is the current one's index since the table's start; first is the first whole one that counts.
	window, first     int64
	previous, current counts
	latest            counts
	share             limit.Share
	// tokens last seen in the bucket, for people.
	tokens float64
	// shareAt is when share was last reported together with decisions, and so was in force.
	shareAt time.Duration
	// life of the region when the estimate began: a region that was silent in between begins anew.
	life int
}

// believes tells whether a report's share is what the region holds. An instance that decides without its store goes on saying the share
// that it last saw, and so does one that has decided nothing lately: neither may overrule another that asks the store now.
func (l *load) believes(now time.Duration, ku *wire.KeyUsage, grew bool) bool {
	from := func(s limit.Source) bool { return int(s) < len(ku.Sources) && ku.Sources[s] > 0 }
	if from(limit.SourceFallback) && !from(limit.SourceRedis) && !from(limit.SourceMemory) {
		return false
	}
	return grew || l.share == 0 || now-l.shareAt > freshFor
}

// advance closes every window before the one preceding now's.
func (l *load) advance(to int64, length time.Duration, p plan.Parameters) {
	if to <= l.window {
		return
	}
	l.close(l.window-1, l.previous, length, p)
	gap := to - l.window - 1
	if gap == 0 {
		l.previous, l.current = l.current, counts{}
	} else {
		l.close(l.window, l.current, length, p)
		if gap > 1 {
			l.latest = counts{}
			l.estimate.Observe(0, time.Duration(gap-1)*length, p)
		}
		l.previous, l.current = counts{}, counts{}
	}
	l.window = to
}

func (l *load) close(index int64, c counts, length time.Duration, p plan.Parameters) {
	l.latest = c
	if index < l.first {
		return // heard only in part
	}
	l.estimate.Observe(c.offered/length.Seconds(), length, p)
}

// add spreads an increase evenly over the time from..to (both since the table's start) into the open windows. The part
// that falls into closed windows is left out: spread evenly, the rate in the open ones is right without it.
func (l *load) add(c counts, from, to, length time.Duration) {
	span := to - from
	if span <= 0 {
		l.current.offered += c.offered
		l.current.refused += c.refused
		return
	}
	part := func(into *counts, index int64) {
		begin := time.Duration(index) * length
		overlap := min(to, begin+length) - max(from, begin)
		if overlap > 0 {
			f := float64(overlap) / float64(span)
			into.offered += c.offered * f
			into.refused += c.refused * f
		}
	}
	part(&l.previous, l.window-1)
	part(&l.current, l.window)
}

// begin forgets everything but the share: the region was silent until since, so what came before says nothing about now.
func (l *load) begin(life int, window int64, since, length time.Duration) {
	first := max(window, int64((since+length-1)/length))
	*l = load{share: l.share, tokens: l.tokens, life: life, window: window, first: first}
}
