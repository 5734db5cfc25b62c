package fallback

import (
	"math"
	"time"

	"partidor.dev/partidor/shared/limit"
)

// slice is what this instance may use of a key: never less than one token of burst, as long as there are any rights.
type slice struct {
	part, whole         float64 // capacities in tokens
	partRate, wholeRate float64 // tokens per second
	share               limit.Share
}

func sliceOf(rule *limit.Rule, share limit.Share, instances int) slice {
	full := rule.SliceOf(share)
	if rule.Algorithm != limit.TokenBucket {
		// A window's quota, spread over the window: at most twice the instance's part in one window.
		full.Rate = full.Capacity / float64(rule.PolicyWindow())
	}
	n := float64(max(1, instances))
	s := slice{part: full.Capacity / n, whole: full.Capacity, partRate: full.Rate / n, wholeRate: full.Rate, share: share}
	if share > 0 {
		s.part, s.whole = max(1, s.part), max(1, s.whole)
	}
	return s
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
