package limit

import "time"

// Outcome is the answer to one request.
type Outcome uint8

const (
	// Allowed: every limit had room and was charged.
	Allowed Outcome = iota
	// Refused: a limit had no room; nothing was charged. RetryAfter tells when to come back.
	Refused
	// TooLarge: the cost is above a limit's capacity, so no waiting helps. Nothing was charged.
	TooLarge
	// Blocked: the rule's mode is block. Nothing was charged.
	Blocked
	// Unable: no decision could be made within the deadline and the rule's on_error is deny.
	Unable
)

var outcomeNames = [...]string{"allowed", "refused", "too_large", "blocked", "unable"}

func (o Outcome) String() string { return nameOf(outcomeNames[:], uint8(o)) }

// Source tells which part made a decision.
type Source uint8

const (
	// SourceRedis: the regional Redis, the truth.
	SourceRedis Source = iota
	// SourcePrefetch: tokens this instance took ahead.
	SourcePrefetch
	// SourceFallback: the local limiter, while Redis is away.
	SourceFallback
	// SourceDeniedCache: a remembered refusal, before its next-token time.
	SourceDeniedCache
	// SourceMemory: the memory store of a single instance without Redis.
	SourceMemory
	// SourceRule: the rule's mode alone decided (block, unlimited, cost 0), no bucket was asked.
	SourceRule
	// SourceHome: the home region of a tiny limit, by request and reply.
	SourceHome

	// Sources is how many there are.
	Sources = iota
)

var sourceNames = [...]string{"redis", "prefetch", "fallback", "denied-cache", "memory", "rule", "home"}

func (s Source) String() string { return nameOf(sourceNames[:], uint8(s)) }

// Decision is the answer to one request with everything that headers, telemetry and the fallback need. With several
// limits in one request it speaks of the strictest: the one that refused, else the one with the least left.
type Decision struct {
	Outcome Outcome
	Source  Source
	// Key and Rule are the limit the numbers below speak of. Rule is the newest the decider knows and may be newer
	// than the asker's.
	Key      Key
	Rule     *Rule
	Revision Revision
	// Share is this region's share of Key in force at the decision.
	Share Share
	// Remaining is the whole tokens left in this region's slice, never negative.
	Remaining int64
	// RetryAfter is the time until the same request would be admitted if nobody else took tokens. Zero unless Refused, or
	// Unable where the decider knows when to try again.
	RetryAfter time.Duration
	// ResetAfter is the time until the slice is full again if nobody takes tokens.
	ResetAfter time.Duration
	// Tokens is the bucket's level with its fraction after the decision. The fallback keeps itself warm from it.
	Tokens float64
	// Ahead is the whole tokens given beyond the cost of each limit, at most what was asked for.
	Ahead int64
	// Degraded marks a decision made without the truth at hand.
	Degraded bool
}

func nameOf(names []string, i uint8) string {
	if int(i) < len(names) {
		return names[i]
	}
	return "unknown"
}
