package bucket

import (
	"context"
	"hash/maphash"
	"sync"
	"time"

	"partidor.dev/partidor/shared/limit"
)

// memoryParts is how many locks the buckets of a Memory are spread over, by tenant, so that all limits of one request lie
// under one lock.
const memoryParts = 64

// sweepBatch is how many buckets a Take looks at for ones that have gone full, and may be forgotten.
const sweepBatch = 4

// Memory keeps buckets in this process: for a single gateway without Redis, and for the simulator. It decides exactly as
// Redis does. Buckets that have had the time to fill are forgotten a few at a time, so memory follows the tenants that are
// active. Safe for concurrent use.
type Memory struct {
	clock Clock
	seed  maphash.Seed
	// keep: nothing is forgotten, for tests that look at the buckets.
	keep  bool
	parts [memoryParts]memoryPart
}

type memoryPart struct {
	mu      sync.Mutex
	buckets map[limit.Key]memoryBucket
}

type memoryBucket struct {
	State
	// until (µs): full from then on, at the latest.
	until int64
}

// NewMemory is an empty store that asks clock for the time; nil means time.Now.
func NewMemory(clock Clock) *Memory {
	if clock == nil {
		clock = time.Now
	}
	m := &Memory{clock: clock, seed: maphash.MakeSeed()}
	for i := range m.parts {
		m.parts[i].buckets = make(map[limit.Key]memoryBucket)
	}
	return m
}

// Take implements Store. It never fails. All limits must be of one tenant.
func (m *Memory) Take(_ context.Context, limits []Limit) (limit.Decision, error) {
	if len(limits) == 0 {
		return limit.Decision{Source: limit.SourceMemory}, nil
	}
	var few [4]bucket
	buckets := few[:0]
	env := Env{Now: m.clock().UnixMicro()}
	p := m.part(limits[0].Key.Tenant)
	p.mu.Lock()
	defer p.mu.Unlock()
	if !m.keep {
		p.sweep(env.Now)
	}
	for i := range limits {
		buckets = append(buckets, open(p.buckets[limits[i].Key].State, &limits[i], env))
	}
	v := take(buckets, limits, env.Now)
	d := v.decision(&buckets[v.at], &limits[v.at], env.Now)
	d.Source = limit.SourceMemory
	for i := range buckets {
		if b := &buckets[i]; b.dirty {
			b.keepLog(env.Now)
			p.buckets[limits[i].Key] = memoryBucket{b.State, env.Now + int64(min(1e18, b.Numbers.ttl()*1000))}
		}
	}
	return d, nil
}

func (m *Memory) part(tenant string) *memoryPart {
	return &m.parts[maphash.String(m.seed, tenant)%memoryParts]
}

// Len is how many buckets are kept.
func (m *Memory) Len() int {
	n := 0
	for i := range m.parts {
		p := &m.parts[i]
		p.mu.Lock()
		n += len(p.buckets)
		p.mu.Unlock()
	}
	return n
}

// sweep forgets some buckets that have had the time to fill twice, as a TTL would. Map order is random, so every bucket is
// looked at sooner or later.
func (p *memoryPart) sweep(now int64) {
	seen := 0
	for k, b := range p.buckets {
		if b.until < now && !b.Rights.Moved {
			delete(p.buckets, k)
		}
		if seen++; seen == sweepBatch {
			return
		}
	}
}
