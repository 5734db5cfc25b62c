package board

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"partidor.dev/partidor/rebalancer/internal/collect"
	"partidor.dev/partidor/rebalancer/internal/ledger"
	"partidor.dev/partidor/rebalancer/internal/plan"
	"partidor.dev/partidor/shared/limit"
)

// Ledger brings a copy of itself up to date.
type Ledger interface {
	Refresh(ctx context.Context, m *ledger.Mirror) error
}

// Collector knows the demand. Slices of loads are in the order of regions.
type Collector interface {
	Demand(now time.Time, regions []string) []plan.Demand
	Survey(now time.Time, regions []string) collect.Survey
	Loads(now time.Time, names []limit.Key, regions []string) []plan.Demand
	Regions(now time.Time) []collect.RegionStatus
	Details(now time.Time, name limit.Key, regions []string) []collect.Detail
}

// Board makes pictures. It is safe for concurrent use.
type Board struct {
	ledger    Ledger
	collector Collector

	mu     sync.Mutex
	mirror ledger.Mirror
	moved  []limit.Key // of the mirror's splits, in order, as of epoch
	epoch  int64
	last   *Picture
	took   time.Duration
}

// New makes a board that has drawn nothing yet.
func New(l Ledger, c Collector) *Board { return &Board{ledger: l, collector: c} }

// freshFor is how long a picture serves; one that took long to draw serves longer, so that drawing never takes more than
// a tenth of a core.
const freshFor = time.Second

// Picture is not older than a second, or ten times what drawing takes. Concurrent callers wait for one drawing. While the
// ledger is away the last picture stays, with the error beside it; without a last one it is nil.
func (b *Board) Picture(ctx context.Context) (*Picture, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.draw(ctx)
}

// Keys draws the named keys as they are now, by the ledger as it was last read. A key that nobody has used lately is as it would begin.
func (b *Board) Keys(names []limit.Key) []Key {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.drawKeys(names, time.Now())
}

func (b *Board) drawKeys(names []limit.Key, now time.Time) []Key {
	d := drawing{mirror: &b.mirror, now: now}
	keys := make([]Key, len(names))
	for i, demand := range b.collector.Loads(now, names, b.regions()) {
		keys[i] = d.draw(demand.Key, demand.Loads)
	}
	return keys
}

// Key is one key with its details, and the picture of the same moment.
func (b *Board) Key(ctx context.Context, name limit.Key) (Key, *Picture, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	p, err := b.draw(ctx)
	if p == nil {
		return Key{}, nil, err
	}
	now := time.Now()
	k := b.drawKeys([]limit.Key{name}, now)[0]
	for i, d := range b.collector.Details(now, name, b.regions()) {
		k.Regions[i].detail(&d)
	}
	return k, p, nil
}

// draw makes a new picture where the last is too old. The caller holds mu.
func (b *Board) draw(ctx context.Context) (*Picture, error) {
	now := time.Now()
	if b.last != nil && now.Sub(b.last.At) < max(freshFor, 10*b.took) {
		return b.last, nil
	}
	if err := b.ledger.Refresh(ctx, &b.mirror); err != nil {
		return b.last, err
	}
	b.last = newPicture(&b.mirror, b.collector.Survey(now, b.regions()), b.movedKeys(), b.collector.Regions(now), now)
	b.took = time.Since(now)
	return b.last, nil
}

func (b *Board) regions() []string {
	names := make([]string, len(b.mirror.Regions))
	for i, r := range b.mirror.Regions {
		names[i] = r.Name
	}
	return names
}

// movedKeys are those of the mirror's splits, in order. They are sorted anew only when there are others than before: a mirror
// never drops a split, unless it begins anew.
func (b *Board) movedKeys() []limit.Key {
	if len(b.moved) != len(b.mirror.Splits) || b.epoch != b.mirror.Revision.Epoch {
		b.epoch = b.mirror.Revision.Epoch
		b.moved = slices.SortedFunc(maps.Keys(b.mirror.Splits), collect.CompareKeys)
	}
	return b.moved
}

// Knowledge is what a plan rests on now. Nothing of it is shared with the board.
func (b *Board) Knowledge(ctx context.Context) (*ledger.Mirror, []plan.Demand, []bool, error) {
	m := new(ledger.Mirror)
	if err := b.ledger.Refresh(ctx, m); err != nil {
		return nil, nil, nil, err
	}
	now := time.Now()
	names, known := make([]string, len(m.Regions)), make([]bool, len(m.Regions))
	for i, r := range m.Regions {
		names[i] = r.Name
	}
	for _, h := range b.collector.Regions(now) {
		if i := slices.Index(names, h.Name); i >= 0 {
			known[i] = h.Known
		}
	}
	return m, b.collector.Demand(now, names), known, nil
}

// Outdate makes the next Picture a new one: something has just been changed.
func (b *Board) Outdate() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.last != nil {
		old := *b.last
		old.At = time.Time{}
		b.last = &old
	}
}
