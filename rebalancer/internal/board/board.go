package board

import (
	"context"
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
	Regions(now time.Time) []collect.RegionStatus
	Details(now time.Time, name limit.Key, regions []string) []collect.Detail
}

// Board makes pictures. It is safe for concurrent use.
type Board struct {
	ledger    Ledger
	collector Collector

	mu     sync.Mutex
	mirror ledger.Mirror
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

// Key is one key with its details, and the picture it is in; or, if nobody has used it lately, the key as it would begin.
func (b *Board) Key(ctx context.Context, name limit.Key) (Key, *Picture, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	p, err := b.draw(ctx)
	if p == nil {
		return Key{}, nil, err
	}
	k := drawKey(&b.mirror, name, time.Now())
	if seen, ok := p.Find(name.Tenant, name.Route); ok {
		k = *seen
		k.Regions = slices.Clone(seen.Regions)
	}
	names := make([]string, len(k.Regions))
	for i := range k.Regions {
		names[i] = k.Regions[i].Region
	}
	for i, d := range b.collector.Details(time.Now(), name, names) {
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
	names := make([]string, len(b.mirror.Regions))
	for i, r := range b.mirror.Regions {
		names[i] = r.Name
	}
	b.last = Draw(&b.mirror, b.collector.Demand(now, names), b.collector.Regions(now), now)
	b.took = time.Since(now)
	return b.last, nil
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
