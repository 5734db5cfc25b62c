package headers

import (
	"math"
	"time"

	"partidor.dev/partidor/shared/limit"
)

// numbers are what the headers of one decision say; all seconds are whole, rounded up.
type numbers struct {
	quota     int64 // q: the worldwide capacity
	window    int64 // w: seconds in which the worldwide rate gives the capacity, at least 1
	remaining int64 // r: whole tokens left in this region
	spend     int64 // t: seconds over which r may be spent, at least 1; at r = 0 the wait for a token
	reset     int64 // seconds until this region's slice is full
}

// numbersOf reads a decision that has a rule. r ÷ t never exceeds the slice's rate, so a client that spreads its
// requests over t keeps its promise.
func numbersOf(d *limit.Decision) numbers {
	n := numbers{
		quota:     d.Rule.Capacity,
		window:    d.Rule.PolicyWindow(),
		remaining: max(0, d.Remaining),
		reset:     seconds(d.ResetAfter),
	}
	// An answer may come from an instance that knows a newer rule than the one that counted.
	n.remaining = min(n.remaining, n.quota)
	n.spend = spend(d, n.remaining)
	return n
}

func spend(d *limit.Decision, remaining int64) int64 {
	if d.Rule.Algorithm != limit.TokenBucket {
		return max(1, seconds(d.ResetAfter))
	}
	rate := d.Rule.SliceOf(d.Share).Rate
	switch {
	case remaining > 0 && rate > 0:
		return ceil(float64(remaining) / rate)
	case d.RetryAfter > 0:
		return max(1, seconds(d.RetryAfter))
	case rate > 0:
		return ceil((1 - min(1, max(0, d.Tokens))) / rate)
	}
	return max(1, seconds(d.ResetAfter))
}

// seconds rounds up to whole seconds, never below 0.
func seconds(d time.Duration) int64 {
	if d <= 0 {
		return 0
	}
	s := int64(d / time.Second)
	if d%time.Second > 0 {
		s++
	}
	return s
}

// mostItem is the largest integer of structured fields (RFC 9651 §3.3.1).
const mostItem = 999_999_999_999_999

// ceil rounds up, to at least 1 and at most what a list field may say.
func ceil(s float64) int64 {
	if !(s < mostItem) {
		return mostItem
	}
	return max(1, int64(math.Ceil(s)))
}

const (
	jitterFrom = 30 // Seconds from which Retry-After is jittered.
	jitterPart = 0.03
)

// RetryAfter is a wait as Retry-After says it: whole seconds, rounded up, at least 1. From 30 s on up to 3 % are added, in
// proportion to spread (from 0 to 1), so that clients that were refused together do not come back together; the jitter
// only ever adds, so whoever obeys has waited long enough.
func RetryAfter(wait time.Duration, spread float64) int64 {
	s := max(1, seconds(wait))
	if s >= jitterFrom {
		s += int64(float64(s) * jitterPart * spread)
	}
	return s
}
