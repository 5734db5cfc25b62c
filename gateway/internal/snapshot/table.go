package snapshot

import "hash/maphash"

// bucketFill is the mean number of entries per bucket beyond which the directory doubles: a bucket's hashes then stay
// within two or three cache lines.
const bucketFill = 8

var seed = maphash.MakeSeed()

// table is an immutable hash table of entries. Readers walk the bucket of a hash and compare hash, then name.
type table[E any] struct {
	buckets [][]slot[E] // a power of two
	n       int
}

type slot[E any] struct {
	hash  uint64
	entry *E
}

func newTable[E any]() table[E] { return table[E]{buckets: make([][]slot[E], 1)} }

// bucket is where entries of hash are, together with others.
func (t *table[E]) bucket(hash uint64) []slot[E] {
	return t.buckets[hash&uint64(len(t.buckets)-1)]
}

// each calls f for every entry, in no order, until it returns false.
func (t *table[E]) each(f func(*E) bool) {
	for _, b := range t.buckets {
		for _, s := range b {
			if !f(s.entry) {
				return
			}
		}
	}
}

// tableEdit is a table being changed. Buckets are shared with the table it came from until they are first touched.
type tableEdit[E any] struct {
	table[E]
	owned []bool // by bucket; nil until the directory is copied
}

func (t table[E]) edit() tableEdit[E] { return tableEdit[E]{table: t} }

// put replaces old by entry where the table holds it, else adds entry.
func (t *tableEdit[E]) put(hash uint64, old, entry *E) {
	b := t.own(hash)
	for i := range *b {
		if old != nil && (*b)[i].entry == old {
			(*b)[i].entry = entry
			return
		}
	}
	*b = append(*b, slot[E]{hash, entry})
	if t.n++; t.n > bucketFill*len(t.buckets) {
		t.grow()
	}
}

func (t *tableEdit[E]) own(hash uint64) *[]slot[E] {
	if t.owned == nil {
		t.buckets = append([][]slot[E](nil), t.buckets...)
		t.owned = make([]bool, len(t.buckets))
	}
	i := hash & uint64(len(t.buckets)-1)
	if !t.owned[i] {
		b := t.buckets[i]
		t.buckets[i] = append(make([]slot[E], 0, len(b)+1), b...)
		t.owned[i] = true
	}
	return &t.buckets[i]
}

func (t *tableEdit[E]) grow() {
	next := make([][]slot[E], 2*len(t.buckets))
	mask := uint64(len(next) - 1)
	for _, b := range t.buckets {
		for _, s := range b {
			next[s.hash&mask] = append(next[s.hash&mask], s)
		}
	}
	t.buckets = next
	t.owned = make([]bool, len(next))
	for i := range t.owned {
		t.owned[i] = true
	}
}
