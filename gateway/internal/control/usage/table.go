package usage

import (
	"hash/maphash"
	"math"
	"math/bits"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"partidor.dev/partidor/shared/limit"
	"partidor.dev/partidor/shared/wire"
)

const (
	shards = 64
	// forgetAfter without a request, a key's counters are dropped and begin again at zero. The collector forgets later, so
	// it never takes an old total for new demand.
	forgetAfter = 10 * time.Minute
	// repeats of a changed key in the reports that follow: a lost report is made good by the next.
	repeats = 2
)

// Table counts what was asked for, per key. It holds at most a fixed number of keys; what does not fit is counted as
// dropped. It is safe for many goroutines, and a known key costs one read lock, one look-up and no allocation.
type Table struct {
	seed    maphash.Seed
	max     int64
	keys    atomic.Int64
	dropped atomic.Uint64
	shards  [shards]shard
	rolling int // the shard that the next report repeats whole
}

type shard struct {
	mu       sync.RWMutex
	counters map[limit.Key]*counter
	_        [64]byte // no two locks in one cache line
}

type counter struct {
	admitted, refused atomic.Uint64
	share             atomic.Int64
	tokens            atomic.Uint64 // bits of a float64
	recent            recent

	// Of the reporter alone.
	sentAdmitted, sentRefused uint64
	changed                   time.Duration // age of the table at the last change seen
	repeats                   int
}

// NewTable counts at most max keys.
func NewTable(max int) *Table {
	t := &Table{seed: maphash.MakeSeed(), max: int64(max)}
	for i := range t.shards {
		t.shards[i].counters = make(map[limit.Key]*counter)
	}
	return t
}

// Count notes one decision about key. A request too large for its limit could never pass and is no load: of it only the
// refusal is noted.
func (t *Table) Count(key limit.Key, cost int64, allowed bool, d limit.Decision) {
	c := t.counter(key)
	if c == nil {
		t.dropped.Add(1)
		return
	}
	switch {
	case allowed:
		c.admitted.Add(uint64(cost))
	case d.Outcome != limit.TooLarge:
		c.refused.Add(uint64(cost))
	}
	c.recent.note(key, cost, allowed, &d)
	if d.Key == key && (d.Source == limit.SourceRedis || d.Source == limit.SourceMemory) {
		c.share.Store(int64(d.Share))
		c.tokens.Store(math.Float64bits(d.Tokens))
	}
}

func (t *Table) counter(key limit.Key) *counter {
	s := t.shard(key)
	s.mu.RLock()
	c := s.counters[key]
	s.mu.RUnlock()
	if c != nil || t.keys.Load() >= t.max {
		return c
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if c = s.counters[key]; c == nil {
		c = new(counter)
		// The names may be parts of a request's buffers.
		s.counters[limit.Key{Tenant: strings.Clone(key.Tenant), Route: strings.Clone(key.Route)}] = c
		t.keys.Add(1)
	}
	return c
}

func (t *Table) shard(key limit.Key) *shard {
	h := maphash.String(t.seed, key.Tenant) ^ bits.RotateLeft64(maphash.String(t.seed, key.Route), 29)
	return &t.shards[h%shards]
}

// Keys is the number of keys counted.
func (t *Table) Keys() int { return int(t.keys.Load()) }

// Dropped is the number of decisions not counted because the table was full, cumulative.
func (t *Table) Dropped() uint64 { return t.dropped.Load() }

// Report calls add for every key whose counters have changed since the last reports, and for a rolling part of the others
// so that a listener that has just started soon knows them all. age is the table's monotonic age. One goroutine reports.
func (t *Table) Report(age time.Duration, add func(wire.KeyUsage)) {
	for i := range t.shards {
		t.shards[i].report(t, age, i == t.rolling, add)
	}
	t.rolling = (t.rolling + 1) % shards
}

func (s *shard) report(t *Table, age time.Duration, whole bool, add func(wire.KeyUsage)) {
	var gone []limit.Key
	s.mu.RLock()
	for key, c := range s.counters {
		switch {
		case c.update(age) || whole || c.recent.refused():
			u := wire.KeyUsage{
				Tenant: key.Tenant, Route: key.Route, Admitted: c.sentAdmitted, Refused: c.sentRefused,
				Share: limit.Share(c.share.Load()), Tokens: math.Float64frombits(c.tokens.Load()),
			}
			u.Sources, u.Refusal = c.recent.take()
			add(u)
		case age-c.changed > forgetAfter:
			gone = append(gone, key)
		}
	}
	s.mu.RUnlock()
	if len(gone) == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, key := range gone {
		delete(s.counters, key)
	}
	t.keys.Add(-int64(len(gone)))
}

// update takes over what has been counted, and tells whether it is worth a report.
func (c *counter) update(age time.Duration) bool {
	admitted, refused := c.admitted.Load(), c.refused.Load()
	if admitted != c.sentAdmitted || refused != c.sentRefused || c.changed == 0 {
		c.sentAdmitted, c.sentRefused = admitted, refused
		c.changed, c.repeats = max(age, 1), repeats
		return true
	}
	if c.repeats > 0 {
		c.repeats--
		return true
	}
	return false
}
