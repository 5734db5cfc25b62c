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
	table   []set[V]
	adding  [stripes]sync.Mutex
	length  atomic.Int64
	evicted atomic.Uint64
	worth   func(*V) int
}

// set is where a key may be: its places lie together, and only a place whose mark fits is followed, so that a look-up
// costs two or three cache lines however full the set is.
type set[V any] struct {
	marks   [ways]atomic.Uint32
	entries [ways]atomic.Pointer[entry[V]]
}

type entry[V any] struct {
	key   limit.Key
	heat  atomic.Uint32 // hottest when used, one less at each choice in its set
	value V
}

// New is an empty map of at most capacity keys, rounded up to a whole set. worth tells how much would be lost with a
// value, 0 for nothing; nil means that all are worth the same.
func New[V any](capacity int, worth func(*V) int) *Map[V] {
	sets := max(1, (capacity+ways-1)/ways)
	if worth == nil {
		worth = func(*V) int { return 1 }
	}
	return &Map[V]{seed: maphash.MakeSeed(), table: make([]set[V], sets), worth: worth}
}

// Get is the value of key, nil if it is not known.
func (m *Map[V]) Get(key limit.Key) *V {
	at, mark := m.locate(key)
	if e := m.table[at].find(mark, key); e != nil {
		e.touch()
		return &e.value
	}
	return nil
}

// GetOrAdd is the value of key, added where it is not known. fill completes a new value before others see it; lost is
// the value it pushes out, nil for none. fill runs under a lock and must not use the map.
func (m *Map[V]) GetOrAdd(key limit.Key, fill func(fresh, lost *V)) *V {
	at, mark := m.locate(key)
	s := &m.table[at]
	if e := s.find(mark, key); e != nil {
		e.touch()
		return &e.value
	}
	lock := &m.adding[at%stripes]
	lock.Lock()
	defer lock.Unlock()
	if e := s.find(mark, key); e != nil {
		return &e.value
	}
	place := m.choose(s)
	fresh := &entry[V]{key: limit.Key{Tenant: strings.Clone(key.Tenant), Route: strings.Clone(key.Route)}}
	if old := s.entries[place].Load(); old == nil {
		fill(&fresh.value, nil)
		m.length.Add(1)
	} else {
		fill(&fresh.value, &old.value)
		m.evicted.Add(1)
	}
	s.entries[place].Store(fresh)
	s.marks[place].Store(mark)
	return &fresh.value
}

// Range visits every key until visit returns false. Keys added or pushed out meanwhile may or may not be seen.
func (m *Map[V]) Range(visit func(limit.Key, *V) bool) {
	for i := range m.table {
		for j := range m.table[i].entries {
			if e := m.table[i].entries[j].Load(); e != nil && !visit(e.key, &e.value) {
				return
			}
		}
	}
}

// Len is the number of keys remembered.
func (m *Map[V]) Len() int { return int(m.length.Load()) }

// Cap is the largest Len there can be.
func (m *Map[V]) Cap() int { return len(m.table) * ways }

// Evicted is the number of keys ever pushed out.
func (m *Map[V]) Evicted() uint64 { return m.evicted.Load() }

// locate is the set where key may be, and its mark there.
func (m *Map[V]) locate(key limit.Key) (at int, mark uint32) {
	h := maphash.String(m.seed, key.Tenant)
	h ^= bits.RotateLeft64(maphash.String(m.seed, key.Route), 29) * 0x9e3779b97f4a7c15
	hi, _ := bits.Mul64(h, uint64(len(m.table)))
	return int(hi), uint32(h)
}

// find looks at the places of a set. While a place changes hands its mark and its entry may not fit each other: then the
// key is not found, as if it had come a moment earlier.
func (s *set[V]) find(mark uint32, key limit.Key) *entry[V] {
	for i := range s.marks {
		if s.marks[i].Load() != mark {
			continue
		}
		if e := s.entries[i].Load(); e != nil && e.key == key {
			return e
		}
	}
	return nil
}

// choose is the place for a new key: an empty one; else that of a value worth nothing, else of the one longest unused; among
// equals the one worth least.
func (m *Map[V]) choose(s *set[V]) (place int) {
	lowest, least := 0, 0
	for i := range s.entries {
		e := s.entries[i].Load()
		if e == nil {
			return i
		}
		worth, rank := m.worth(&e.value), 0
		if worth > 0 {
			rank = 1 + e.cool()
		}
		if i == 0 || rank < lowest || (rank == lowest && worth < least) {
			place, lowest, least = i, rank, worth
		}
	}
	return place
}

// hottest is how many choices in its set a used entry outlives before it counts as unused.
const hottest = 3

// touch marks an entry as used; it writes only where that is news, so that readers of a hot key share its cache line.
func (e *entry[V]) touch() {
	if e.heat.Load() != hottest {
		e.heat.Store(hottest)
	}
}

// cool tells the heat of an entry and takes one off. A touch at the same moment may be lost; the next one is not.
func (e *entry[V]) cool() int {
	h := e.heat.Load()
	if h > 0 {
		e.heat.Store(h - 1)
	}
	return int(h)
}
