package bounded

import (
	"hash/maphash"
	"math/bits"
	"strings"
	"sync"
	"sync/atomic"

	"partidor.dev/partidor/shared/limit"
)

const (
	// ways is the size of a set: enough that a table half full loses almost nothing to uneven hashing.
	ways = 8
	// stripes is the number of locks that insertions share.
	stripes = 64
)

// Map remembers a V for each of at most Cap keys. All methods are safe for many goroutines. Values are shared: V does its
// own locking. A value that has been pushed out may still be in use by whoever looked it up before.
type Map[V any] struct {
	seed    maphash.Seed
	sets    uint64
	places  []atomic.Pointer[entry[V]]
	adding  [stripes]sync.Mutex
	length  atomic.Int64
	evicted atomic.Uint64
	worth   func(*V) int
}

type entry[V any] struct {
	key   limit.Key
	used  atomic.Bool
	value V
}

// New is an empty map of at most capacity keys, rounded up to a whole set. worth tells how much would be lost with a
// value, 0 for nothing; nil means that all are worth the same.
func New[V any](capacity int, worth func(*V) int) *Map[V] {
	sets := max(1, (capacity+ways-1)/ways)
	if worth == nil {
		worth = func(*V) int { return 1 }
	}
	return &Map[V]{
		seed:   maphash.MakeSeed(),
		sets:   uint64(sets),
		places: make([]atomic.Pointer[entry[V]], sets*ways),
		worth:  worth,
	}
}

// Get is the value of key, nil if it is not known.
func (m *Map[V]) Get(key limit.Key) *V {
	if e := m.find(m.set(key), key); e != nil {
		e.touch()
		return &e.value
	}
	return nil
}

// GetOrAdd is the value of key, added where it is not known. fill completes a new value before others see it; lost is
// the value it pushes out, nil for none. fill runs under a lock and must not use the map.
func (m *Map[V]) GetOrAdd(key limit.Key, fill func(fresh, lost *V)) *V {
	first := m.set(key)
	if e := m.find(first, key); e != nil {
		e.touch()
		return &e.value
	}
	lock := &m.adding[(first/ways)%stripes]
	lock.Lock()
	defer lock.Unlock()
	if e := m.find(first, key); e != nil {
		return &e.value
	}
	place, old := m.choose(first)
	fresh := &entry[V]{key: limit.Key{Tenant: strings.Clone(key.Tenant), Route: strings.Clone(key.Route)}}
	if old == nil {
		fill(&fresh.value, nil)
		m.length.Add(1)
	} else {
		fill(&fresh.value, &old.value)
		m.evicted.Add(1)
	}
	place.Store(fresh)
	return &fresh.value
}

// Range visits every key until visit returns false. Keys added or pushed out meanwhile may or may not be seen.
func (m *Map[V]) Range(visit func(limit.Key, *V) bool) {
	for i := range m.places {
		if e := m.places[i].Load(); e != nil && !visit(e.key, &e.value) {
			return
		}
	}
}

// Len is the number of keys remembered.
func (m *Map[V]) Len() int { return int(m.length.Load()) }

// Cap is the largest Len there can be.
func (m *Map[V]) Cap() int { return len(m.places) }

// Evicted is the number of keys ever pushed out.
func (m *Map[V]) Evicted() uint64 { return m.evicted.Load() }

// set is the index of the first place where key may be.
func (m *Map[V]) set(key limit.Key) int {
	h := maphash.String(m.seed, key.Tenant)
	h ^= bits.RotateLeft64(maphash.String(m.seed, key.Route), 29) * 0x9e3779b97f4a7c15
	hi, _ := bits.Mul64(h, m.sets)
	return int(hi) * ways
}

func (m *Map[V]) find(first int, key limit.Key) *entry[V] {
	for i := first; i < first+ways; i++ {
		e := m.places[i].Load()
		if e == nil {
			return nil // places are filled in order and never emptied
		}
		if e.key == key {
			return e
		}
	}
	return nil
}

// choose is the place for a new key and the entry that must go for it, if any: one that is worth nothing, else one not
// used since the last choice here, else any; among equals the one worth least.
func (m *Map[V]) choose(first int) (*atomic.Pointer[entry[V]], *entry[V]) {
	var place *atomic.Pointer[entry[V]]
	var victim *entry[V]
	var lowest, least int
	for i := first; i < first+ways; i++ {
		e := m.places[i].Load()
		if e == nil {
			return &m.places[i], nil
		}
		used, worth := e.used.Swap(false), m.worth(&e.value)
		rank := 1
		if worth == 0 {
			rank = 0
		} else if used {
			rank = 2
		}
		if victim == nil || rank < lowest || (rank == lowest && worth < least) {
			place, victim, lowest, least = &m.places[i], e, rank, worth
		}
	}
	return place, victim
}

// touch marks an entry as used; it writes only where that is news, so that readers of a hot key share its cache line.
func (e *entry[V]) touch() {
	if !e.used.Load() {
		e.used.Store(true)
	}
}
