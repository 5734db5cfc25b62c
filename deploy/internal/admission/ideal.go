package admission

import (
	"sync"
	"time"
)

// Ideal is one bucket for the whole world, asked everything that the regions were asked. It tells which refusals were
// needless: those of seconds in which it refused nobody.
//
// It is safe for concurrent use. Times are since any fixed moment; one that goes back counts as the latest before.
type Ideal struct {
	capacity, rate float64

	mu       sync.Mutex
	tokens   float64
	admitted float64
	now      time.Duration
	full     bool  // the ideal bucket refused somebody in the running second
	refused  int64 // by the regions, in the running second
	needless int64
}

// NewIdeal is a full bucket of capacity tokens, refilled by rate tokens per second.
func NewIdeal(capacity, rate float64) *Ideal {
	return &Ideal{capacity: capacity, rate: rate, tokens: capacity}
}

// Asked notes that tokens were asked for at a time, and whether a region refused them.
func (b *Ideal) Asked(tokens float64, at time.Duration, refused bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.advance(at)
	if b.tokens >= tokens {
		b.tokens -= tokens
		b.admitted += tokens
	} else {
		b.full = true
	}
	if refused {
		b.refused++
	}
}

func (b *Ideal) advance(at time.Duration) {
	if at <= b.now {
		return
	}
	if at/time.Second > b.now/time.Second {
		b.needless += b.unneeded()
		b.full, b.refused = false, 0
	}
	b.tokens = min(b.capacity, b.tokens+b.rate*(at-b.now).Seconds())
	b.now = at
}

func (b *Ideal) unneeded() int64 {
	if b.full {
		return 0
	}
	return b.refused
}

// Needless is the number of refusals in seconds in which the ideal bucket refused nobody.
func (b *Ideal) Needless() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.needless + b.unneeded()
}

// Admitted is how many tokens the ideal bucket gave.
func (b *Ideal) Admitted() float64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.admitted
}
