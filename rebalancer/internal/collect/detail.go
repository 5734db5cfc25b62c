package collect

import (
	"slices"
	"time"

	"partidor.dev/partidor/shared/limit"
	"partidor.dev/partidor/shared/wire"
)

// Detail is what people want to know of one key in one region beside its load.
type Detail struct {
	// Tokens last seen in the bucket; Told is false where none were.
	Tokens float64
	Told   bool
	// Sources counts the decisions of the last minute or two, by limit.Source; nil where all came from the store.
	Sources []uint64
	// Refusal is the last one, at RefusedAt by gateway RefusedBy; nil where there was none for DetailsFor.
	Refusal   *wire.Refusal
	RefusedAt time.Time
	RefusedBy string
	// Moves of the region's share, as its reports showed them, the newest last.
	Moves []ShareMove
	// Loans that the region has got, the newest last.
	Loans []Loan
}

// ShareMove is a change of a region's share of a key.
type ShareMove struct {
	At   time.Time   `json:"at"`
	From limit.Share `json:"from"`
	To   limit.Share `json:"to"`
}

const (
	// DetailsFor is how long a detail is of interest, sourcesFor how long decisions are recent.
	DetailsFor = 15 * time.Minute
	sourcesFor = time.Minute
	// maxDetails and maxMoves bound the memory: only keys that are refused, move, or are not decided by the store have any.
	maxDetails = 50_000
	maxMoves   = 16
)

// keyRegion is a key in a region.
type keyRegion struct {
	key    *key
	region int
}

type detail struct {
	used time.Duration
	// minute is when counting into sources began; former are those of the minute before.
	minute          time.Duration
	sources, former []uint64
	refusal         *wire.Refusal
	refusedAt       time.Duration
	refusedBy       string
	moves           []move
	// shares is what each gateway last said. One that decides without its store goes on saying an old share: only a change of
	// its own word is a move.
	shares  map[string]limit.Share
	lenders map[string]lender
	loans   []loan
}

type move struct {
	at       time.Duration
	from, to limit.Share
}

// note takes in what a report says for people. held is the share that the region was last known to hold.
func (t *Table) note(now time.Duration, at keyRegion, instance string, ku *wire.KeyUsage, held limit.Share) {
	moved := ku.Share > 0 && held > 0 && ku.Share != held && ku.Share <= limit.Whole
	if !moved && ku.Sources == nil && ku.Refusal == nil {
		return
	}
	d := t.detail(now, at)
	if d == nil {
		return
	}
	d.used = now
	if ku.Refusal != nil {
		d.refusal, d.refusedAt, d.refusedBy = ku.Refusal, now, instance
	}
	if ku.Share > 0 && ku.Share <= limit.Whole {
		d.moveTo(now, instance, held, ku.Share)
	}
	d.advance(now)
	for i, n := range ku.Sources {
		for len(d.sources) <= i {
			d.sources = append(d.sources, 0)
		}
		d.sources[i] += uint64(n)
	}
}

// detail finds or makes one, nil if there are too many.
func (t *Table) detail(now time.Duration, at keyRegion) *detail {
	d := t.details[at]
	if d == nil && len(t.details) < maxDetails {
		d = &detail{minute: now, used: now}
		t.details[at] = d
	}
	return d
}

// moveTo notes the share that an instance says, and the move where that is one. held is what the region was known to hold.
func (d *detail) moveTo(now time.Duration, instance string, held, share limit.Share) {
	before, known := d.shares[instance]
	if d.shares == nil {
		d.shares = map[string]limit.Share{}
	}
	d.shares[instance] = share
	if !known {
		before = held
	}
	last := len(d.moves) - 1
	if before == 0 || share == before || last >= 0 && (share == d.moves[last].to || !known && share == d.moves[last].from) {
		return
	}
	if len(d.moves) == maxMoves {
		d.moves = slices.Delete(d.moves, 0, 1)
	}
	d.moves = append(d.moves, move{now, before, share})
}

func (d *detail) advance(now time.Duration) {
	switch age := now - d.minute; {
	case age >= 2*sourcesFor:
		d.former, d.sources, d.minute = nil, nil, now
	case age >= sourcesFor:
		d.former, d.sources, d.minute = d.sources, nil, d.minute+sourcesFor
	}
}

// forgetDetails drops those of keys that are gone and those that are of no interest any more.
func (t *Table) forgetDetails(now time.Duration, gone map[*key]bool) {
	for at, d := range t.details {
		if gone[at.key] || now-d.used > DetailsFor {
			delete(t.details, at)
		}
	}
}

// Details of a key, one per named region. clock is the wall time at now.
func (t *Table) Details(now time.Duration, clock time.Time, name limit.Key, regions []string) []Detail {
	out := make([]Detail, len(regions))
	k := t.keys[name]
	if k == nil {
		return out
	}
	for i, region := range regions {
		r, ok := t.regions[region]
		if !ok {
			continue
		}
		o := &out[i]
		if r < len(k.loads) && k.loads[r].share > 0 {
			o.Tokens, o.Told = k.loads[r].tokens, true
		}
		if d := t.details[keyRegion{k, r}]; d != nil {
			d.describe(now, clock, o)
		}
	}
	return out
}

func (d *detail) describe(now time.Duration, clock time.Time, o *Detail) {
	d.advance(now)
	o.Sources = slices.Clone(d.sources)
	for i, n := range d.former {
		for len(o.Sources) <= i {
			o.Sources = append(o.Sources, 0)
		}
		o.Sources[i] += n
	}
	wall := func(at time.Duration) time.Time { return clock.Add(at - now) }
	if d.refusal != nil && now-d.refusedAt <= DetailsFor {
		o.Refusal, o.RefusedAt, o.RefusedBy = d.refusal, wall(d.refusedAt), d.refusedBy
	}
	for _, m := range d.moves {
		if now-m.at <= DetailsFor {
			o.Moves = append(o.Moves, ShareMove{wall(m.at), m.from, m.to})
		}
	}
	for _, l := range d.loans {
		if now-l.at <= DetailsFor {
			o.Loans = append(o.Loans, Loan{wall(l.at), l.from, l.tokens})
		}
	}
}
