package fallback

import (
	"math"
	"time"

	"partidor.dev/partidor/shared/bucket"
	"partidor.dev/partidor/shared/limit"
)

// slice is what this instance may use of a key: never less than one token of burst, as long as there are any rights.
type slice struct {
	part, whole         float64 // capacities in tokens
	partRate, wholeRate float64 // tokens per second
	share               limit.Share
	// edge is when a fixed window ends, and all of it is there again, in nanoseconds since the limiter's start; zero for what
	// refills all the time.
	edge int64
}

// slice of a key at at. A fixed window is kept as such. The sliding ones are taken as a bucket that fills in one window: it
// admits at most twice the instance's part in any window, and on average the part.
func (l *Local) slice(at int64, rule *limit.Rule, share limit.Share, instances int) slice {
	full := rule.SliceOf(share)
	n := float64(max(1, instances))
	s := slice{part: full.Capacity / n, whole: full.Capacity, share: share}
	if share > 0 {
		s.part, s.whole = max(1, s.part), max(1, s.whole)
	}
	switch rule.Algorithm {
	case limit.TokenBucket:
		s.partRate, s.wholeRate = full.Rate/n, full.Rate
	case limit.FixedWindow:
		_, end := bucket.WindowOf(rule, l.start.Add(time.Duration(at)))
		s.edge = max(at+1, at+int64(end.Sub(l.start.Add(time.Duration(at)))))
	default:
		s.wholeRate = full.Capacity / float64(rule.PolicyWindow())
		s.partRate = s.wholeRate / n
	}
	return s
}

// wait is the time from at until missing tokens are there.
func (s *slice) wait(at int64, missing float64) time.Duration {
	if s.edge > 0 && missing > tolerance {
		return time.Duration(max(0, s.edge-at))
	}
	return wait(missing, s.partRate)
}

// tolerance is how far below a whole token a level may lie by rounding and still count as one.
const tolerance = 1e-9

// wait is the time until missing tokens have come at rate per second.
func wait(missing, rate float64) time.Duration {
	switch {
	case missing <= tolerance:
		return 0
	case rate <= 0:
		return longest
	}
	seconds := missing / rate
	if seconds >= longest.Seconds() {
		return longest
	}
	return time.Duration(math.Ceil(seconds * float64(time.Second)))
}

// longest stands for a time that will never come, within what a header can say.
const longest = 10 * 365 * 24 * time.Hour
