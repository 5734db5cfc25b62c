// Package admission judges from outside, by what clients saw, whether all regions together kept a limit.
package admission

import (
	"math"
	"sync"
	"time"
)

const (
	// edge is the resolution of the intervals looked at.
	edge = time.Millisecond
	// Horizon is the longest that one request may take and still be judged.
	Horizon = 4 * time.Second
	edges   = int64(Horizon / edge)
)

// Checker watches the admissions of one key, worldwide. A limit of capacity C and rate R lets at most C + R·t tokens pass
// in any interval of length t. Nobody outside knows when exactly a request was decided, only that it was after it was sent
// and before it was answered; so the checker counts, for every interval, the requests that were certainly decided in it.
// What it calls too much was too much, whatever the network did.
//
// All methods are safe for concurrent use. Times are since any fixed moment, and those of receipt must not go back by more
// than goroutines are late.
type Checker struct {
	capacity, rate float64

	mu sync.Mutex
	// level[i] belongs to the interval that begins at edge number i: tokens certainly decided since, plus rate × the time
	// of that edge. Subtracting rate × now gives what the interval up to now has drawn beyond its refill.
	level []float64
	last  int64   // newest edge in level
	old   float64 // the highest level of all edges older than those kept
	peak  float64 // the highest of all levels
	deep  float64 // the deepest draw so far
}

// NewChecker watches a limit of capacity tokens and rate tokens per second.
func NewChecker(capacity, rate float64) *Checker {
	return &Checker{capacity: capacity, rate: rate, level: make([]float64, edges), last: -1, old: math.Inf(-1)}
}

// Admitted notes that tokens were taken by a request sent and answered at these times.
func (c *Checker) Admitted(tokens float64, sent, received time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.advance(int64(received / edge))
	first := c.last - edges + 1
	begin := int64(sent / edge)
	if begin < first {
		return // too slow to judge; leaving it out errs on the side of the accused
	}
	c.old += tokens
	c.peak = max(c.peak, c.old)
	for i := max(first, 0); i <= begin; i++ {
		at := &c.level[i%edges]
		*at += tokens
		c.peak = max(c.peak, *at)
	}
	c.deep = max(c.deep, c.peak-c.rate*received.Seconds())
}

// advance adds the edges up to now and lets the oldest go.
func (c *Checker) advance(now int64) {
	for c.last < now {
		c.last++
		at := &c.level[c.last%edges]
		if c.last >= edges {
			c.old = max(c.old, *at)
		}
		*at = c.rate * (time.Duration(c.last) * edge).Seconds()
		c.peak = max(c.peak, *at)
	}
}

// Deepest is the most that any interval has drawn beyond its refill: at most the capacity if the limit was kept.
func (c *Checker) Deepest() float64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.deep
}

// Excess is how many tokens too many passed in the worst interval; 0 if the limit was kept.
func (c *Checker) Excess() float64 { return max(0, c.Deepest()-c.capacity) }
