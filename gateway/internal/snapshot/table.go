package snapshot

import "hash/maphash"

const (
	// pageSlots is the unit an edit copies: 4 KiB of slots.
	pageSlots = 256
	// pageFull is where a page makes the table double, so that every probe meets an empty slot soon.
	pageFull = pageSlots * 3 / 4
	// meanFull is the mean use of pages beyond which the table doubles.
	meanFull = pageSlots / 2
)

var seed = maphash.MakeSeed()

func hashOf(name string) uint64 { return maphash.String(seed, name) }

// table is an immutable open-addressing hash table in pages; entries are never taken out, only replaced. The upper half
// of a hash names the page, the lower byte the first slot, and probing stays within the page. A reader compares the
// hash, then the entry's own name:
//
//	for p, i := t.probe(h); p.slots[i].entry != nil; i++ { ... }
type table[E any] struct {
	pages []*page[E] // a power of two
	n     int
}

type page[E any] struct {
	slots [pageSlots]slot[E]
	used  int
}

type slot[E any] struct {
	hash  uint64
	entry *E
}

func newTable[E any]() table[E] { return table[E]{pages: []*page[E]{new(page[E])}} }

func (t *table[E]) probe(hash uint64) (*page[E], uint8) {
	return t.pages[(hash>>32)&uint64(len(t.pages)-1)], uint8(hash)
}

// each calls f for every entry, in no order, until it returns false.
func (t *table[E]) each(f func(*E) bool) {
	for _, p := range t.pages {
		for i := range p.slots {
			if e := p.slots[i].entry; e != nil && !f(e) {
				return
			}
		}
	}
}

// tableEdit is a table being changed. Pages are shared with the table it came from until they are first touched.
type tableEdit[E any] struct {
	table[E]
	owned []bool // by page; nil until the directory is copied
}

func (t table[E]) edit() tableEdit[E] { return tableEdit[E]{table: t} }

// put replaces old by entry where the table holds it, else adds entry.
func (t *tableEdit[E]) put(hash uint64, old, entry *E) {
	p := t.own(hash)
	i := uint8(hash)
	for ; p.slots[i].entry != nil; i++ {
		if p.slots[i].entry == old {
			p.slots[i].entry = entry
			return
		}
	}
	p.slots[i] = slot[E]{hash, entry}
	p.used++
	t.n++
	if p.used >= pageFull || t.n > meanFull*len(t.pages) {
		t.grow()
	}
}

func (t *tableEdit[E]) own(hash uint64) *page[E] {
	if t.owned == nil {
		t.pages = append([]*page[E](nil), t.pages...)
		t.owned = make([]bool, len(t.pages))
	}
	i := (hash >> 32) & uint64(len(t.pages)-1)
	if !t.owned[i] {
		p := *t.pages[i]
		t.pages[i], t.owned[i] = &p, true
	}
	return t.pages[i]
}

// grow doubles the table until no page is full.
func (t *tableEdit[E]) grow() {
	for n := 2 * len(t.pages); ; n *= 2 {
		pages := make([]*page[E], n)
		for i := range pages {
			pages[i] = new(page[E])
		}
		if spread(t.pages, pages) {
			t.pages, t.owned = pages, make([]bool, n)
			for i := range t.owned {
				t.owned[i] = true
			}
			return
		}
	}
}

// spread places every slot of from in to, and tells whether no page became full by that.
func spread[E any](from, to []*page[E]) bool {
	for _, p := range from {
		for _, s := range p.slots {
			if s.entry == nil {
				continue
			}
			dst := to[(s.hash>>32)&uint64(len(to)-1)]
			if dst.used++; dst.used >= pageFull {
				return false
			}
			i := uint8(s.hash)
			for dst.slots[i].entry != nil {
				i++
			}
			dst.slots[i] = s
		}
	}
	return true
}
