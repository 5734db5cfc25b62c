package ledger

import (
	"context"
	"fmt"
	"maps"
	"time"

	"github.com/jackc/pgx/v5"

	"partidor.dev/partidor/shared/limit"
)

// RegionLease is what the control plane knows of a region's lease: see migration 00013.
type RegionLease struct {
	Incarnation int64
	Fences      bool
	Floor       limit.Share
}

// RegionLeases of all regions that were ever noted.
func (p *Postgres) RegionLeases(ctx context.Context) (map[string]RegionLease, error) {
	rows, err := p.pool.Query(ctx, `SELECT region, incarnation, fences, floor_share FROM region_lease`)
	if err != nil {
		return nil, wrap("read region leases", err)
	}
	all := map[string]RegionLease{}
	var name string
	var l RegionLease
	_, err = pgx.ForEachRow(rows, []any{&name, &l.Incarnation, &l.Fences, &l.Floor}, func() error {
		all[name] = l
		return nil
	})
	return all, wrap("read region leases", err)
}

// NoteLease keeps whether a region fences, and its floor if that is larger than before. ErrFenced where term is over.
func (p *Postgres) NoteLease(ctx context.Context, term int64, region string, fences bool, floor limit.Share) error {
	return p.inTerm(ctx, "note a region's lease", term, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `INSERT INTO region_lease AS l (region, fences, floor_share) VALUES ($1, $2, $3)
			ON CONFLICT (region) DO UPDATE SET fences = $2, floor_share = greatest(l.floor_share, $3)`, region, fences, floor)
		return err
	})
}

// TakeIncarnation is a number for acting in a region's name that nobody has had before: above the last one, above what the
// caller knows of, and odd, where regions themselves take even ones. ErrFenced where term is over.
func (p *Postgres) TakeIncarnation(ctx context.Context, term int64, region string, above int64) (number int64, err error) {
	err = p.inTerm(ctx, "take an incarnation", term, func(tx pgx.Tx) error {
		return tx.QueryRow(ctx, `INSERT INTO region_lease AS l (region, incarnation) VALUES ($1, $2)
			ON CONFLICT (region) DO UPDATE SET incarnation = greatest(l.incarnation + 1, $2) | 1 RETURNING incarnation`,
			region, leaderNumber(above, time.Now())).Scan(&number)
	})
	return number, err
}

// leaderNumber follows the time of day, as regions' own numbers do.
func leaderNumber(above int64, now time.Time) int64 { return max(now.UnixMilli(), above+1) | 1 }

func (p *Postgres) inTerm(ctx context.Context, what string, term int64, do func(pgx.Tx) error) error {
	err := pgx.BeginFunc(ctx, p.pool, func(tx pgx.Tx) error {
		if err := do(tx); err != nil {
			return err
		}
		return fence(ctx, tx, term)
	})
	return wrap(what, err)
}

// termOver refuses a leader that leads no more.
func (m *Memory) termOver(term int64) error {
	if term < m.term {
		return fmt.Errorf("region lease: %w", ErrFenced)
	}
	m.term = term
	return nil
}

// RegionLeases as long as the process lives. The caller may keep and change what it gets.
func (m *Memory) RegionLeases(context.Context) (map[string]RegionLease, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	leases := make(map[string]RegionLease, len(m.leases))
	maps.Copy(leases, m.leases)
	return leases, nil
}

// NoteLease keeps whether a region fences, and its floor if that is larger than before.
func (m *Memory) NoteLease(_ context.Context, term int64, region string, fences bool, floor limit.Share) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.termOver(term); err != nil {
		return err
	}
	l := m.leases[region]
	l.Fences, l.Floor = fences, max(l.Floor, floor)
	m.keepLease(region, l)
	return nil
}

// TakeIncarnation is a number for acting in a region's name that nobody has had before.
func (m *Memory) TakeIncarnation(_ context.Context, term int64, region string, above int64) (int64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.termOver(term); err != nil {
		return 0, err
	}
	l := m.leases[region]
	l.Incarnation = leaderNumber(max(above, l.Incarnation), m.clock())
	m.keepLease(region, l)
	return l.Incarnation, nil
}

func (m *Memory) keepLease(region string, l RegionLease) {
	if m.leases == nil {
		m.leases = map[string]RegionLease{}
	}
	m.leases[region] = l
}
