package bucket

import (
	"math"
	"time"

	"partidor.dev/partidor/shared/limit"
)

// verdict is the answer to one request over several buckets: the outcome, which of them it speaks of, and the tokens each
// gave ahead.
type verdict struct {
	outcome limit.Outcome
	at      int
	ahead   float64
	// wait is how long the refusal would last, µs.
	wait float64
}

// take charges every bucket or none. buckets[i] is limits[i]'s, opened.
func take(buckets []bucket, limits []Limit, now int64) verdict {
	worst := verdict{wait: -1}
	for i := range limits {
		buckets[i].settleOwed(limits[i].Owed)
		outcome, wait := buckets[i].fits(limits[i].Cost, now)
		if outcome > worst.outcome || outcome == worst.outcome && outcome != limit.Allowed && wait > worst.wait {
			worst = verdict{outcome: outcome, at: i, wait: wait}
		}
	}
	if worst.outcome != limit.Allowed {
		for i := range buckets {
			buckets[i].note()
		}
		return worst
	}
	v := verdict{ahead: math.Inf(1)}
	for i := range buckets {
		v.ahead = min(v.ahead, buckets[i].spare(limits[i].Cost, limits[i].Ahead))
	}
	least := math.Inf(1)
	for i := range buckets {
		buckets[i].charge(float64(limits[i].Cost) + v.ahead)
		if buckets[i].Tokens < least {
			v.at, least = i, buckets[i].Tokens
		}
	}
	return v
}

// decision says v in the words of headers and telemetry. l is the limit it speaks of.
func (v verdict) decision(b *bucket, l *Limit, now int64) limit.Decision {
	var d limit.Decision
	if b.Numbers.Algorithm == limit.TokenBucket {
		d = b.slice.decision(v.outcome, b.Tokens, l.Cost)
	} else {
		reset := b.windowReset(now)
		d = b.slice.windowDecision(v.outcome, b.Tokens, min(v.wait, reset), reset)
	}
	d.Key, d.Rule, d.Revision, d.Ahead = l.Key, l.Rule, l.Revision, int64(v.ahead)
	if b.stale {
		d.Rule, d.Revision = b.Numbers.Rule(l.Rule, b.Revision), b.Revision
	}
	return d
}

// decision holds what follows from a level under a slice.
func (s Slice) decision(outcome limit.Outcome, tokens float64, cost int64) limit.Decision {
	wait, reset := s.Wait(tokens, min(float64(cost), s.Capacity)), s.Wait(tokens, s.Capacity)
	if wait == 0 {
		// The cost is above the slice as it stands, though not above the limit: only a change of shares helps.
		wait = reset
	}
	return s.windowDecision(outcome, tokens, wait, reset)
}

// windowDecision is decision where the times (µs) do not follow from the level.
func (s Slice) windowDecision(outcome limit.Outcome, tokens, wait, reset float64) limit.Decision {
	d := limit.Decision{Outcome: outcome, Share: s.Share, Tokens: tokens, ResetAfter: micros(reset)}
	d.Remaining = int64(max(0, min(math.Floor(tokens+tolerance), s.Capacity, limit.MaxTokens)))
	if outcome == limit.Refused {
		d.RetryAfter = micros(wait)
		if d.RetryAfter == 0 {
			d.RetryAfter = time.Second
		}
	}
	return d
}

// micros is a number of microseconds as a duration, as long as a duration can be where it does not fit.
func micros(us float64) time.Duration {
	if us >= math.MaxInt64/1000 {
		return math.MaxInt64
	}
	return time.Duration(us) * time.Microsecond
}
