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
}

// take charges every bucket or none. buckets[i] is limits[i]'s, opened.
func take(buckets []bucket, limits []Limit) verdict {
	worst, longest := verdict{}, -1.0
	for i := range limits {
		buckets[i].settleOwed(limits[i].Owed)
		outcome, wait := buckets[i].fits(limits[i].Cost)
		if outcome > worst.outcome || outcome == worst.outcome && outcome != limit.Allowed && wait > longest {
			worst, longest = verdict{outcome: outcome, at: i}, wait
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
func (v verdict) decision(b *bucket, l *Limit) limit.Decision {
	d := b.slice.decision(v.outcome, b.Tokens, l.Cost)
	d.Key, d.Rule, d.Revision, d.Ahead = l.Key, l.Rule, l.Revision, int64(v.ahead)
	if b.stale {
		d.Rule, d.Revision = b.Numbers.Rule(l.Rule, b.Revision), b.Revision
	}
	return d
}

// decision holds what follows from a level under a slice.
func (s Slice) decision(outcome limit.Outcome, tokens float64, cost int64) limit.Decision {
	d := limit.Decision{Outcome: outcome, Share: s.Share, Tokens: tokens}
	d.Remaining = int64(max(0, min(math.Floor(tokens+tolerance), s.Capacity)))
	d.ResetAfter = micros(s.Wait(tokens, s.Capacity))
	if outcome == limit.Refused {
		d.RetryAfter = micros(s.Wait(tokens, min(float64(cost), s.Capacity)))
		if d.RetryAfter == 0 {
			// The cost is above the slice as it stands, though not above the limit: only a change of shares helps.
			d.RetryAfter = max(d.ResetAfter, time.Second)
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
