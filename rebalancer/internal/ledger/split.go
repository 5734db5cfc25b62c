package ledger

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"partidor.dev/partidor/shared/limit"
)

// Split is what the ledger knows of one key's shares. A key that nobody has planned or pinned has none and lives by the
// base split.
type Split struct {
	Key     limit.Key
	Regions []RegionShare // in the order of region names
	// Reason, By and At tell of the last decision; Term and Cycle of the leader's, 0 where a person decided.
	Reason string
	By     string
	At     time.Time
	Term   int64
	Cycle  int64
}

// RegionShare is one region's part of a Split.
type RegionShare struct {
	Region string
	Target limit.Share
	// Observed is the share last reported as in force, nil if none was; ObservedAt when it was first seen at that value.
	Observed   *limit.Share
	ObservedAt time.Time
	// Base is the base share noted when the key first moved, nil for a key that never has.
	Base *limit.Share
	// Pin is the share an operator fixed, nil where free; it ends at PinExpires unless that is zero.
	Pin        *limit.Share
	PinExpires time.Time
}

// Target is the split as region -> target share.
func (s *Split) Target() limit.Split {
	out := make(limit.Split, len(s.Regions))
	for _, r := range s.Regions {
		out[r.Region] = r.Target
	}
	return out
}

// Pinned tells whether r has a pin in force at now.
func (r *RegionShare) Pinned(now time.Time) bool {
	return r.Pin != nil && (r.PinExpires.IsZero() || now.Before(r.PinExpires))
}

const selectSplit = `SELECT tenant_id, route_id, region, target_share, observed_share, observed_at, base_share,
	pinned_share, pin_expires_at, reason, updated_by, updated_at, term, cycle FROM split `

// SplitsSince is every split changed at or after since, in the order of tenant and route: an overlapping increment for a
// reader that keeps what it has. The zero time asks for all.
func (p *Postgres) SplitsSince(ctx context.Context, since time.Time) (splits []Split, err error) {
	err = p.snapshot(ctx, "read splits", func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, selectSplit+`WHERE (tenant_id, route_id) IN (SELECT tenant_id, route_id FROM split WHERE updated_at >= $1)
			ORDER BY tenant_id, route_id, region`, since)
		if err != nil {
			return err
		}
		splits, err = collectSplits(rows)
		return err
	})
	return splits, err
}

// SplitOf is the split of one key; ErrNotFound where it has none.
func (p *Postgres) SplitOf(ctx context.Context, key limit.Key) (split Split, err error) {
	err = p.snapshot(ctx, "read split of "+key.String(), func(tx pgx.Tx) error {
		split, err = readSplit(ctx, tx, key)
		return err
	})
	return split, err
}

func readSplit(ctx context.Context, tx pgx.Tx, key limit.Key) (Split, error) {
	rows, err := tx.Query(ctx, selectSplit+`WHERE tenant_id = $1 AND route_id = $2 ORDER BY region`, key.Tenant, key.Route)
	if err != nil {
		return Split{}, err
	}
	splits, err := collectSplits(rows)
	if err != nil {
		return Split{}, err
	}
	if len(splits) == 0 {
		return Split{}, ErrNotFound
	}
	return splits[0], nil
}

// collectSplits joins rows that come ordered by key.
func collectSplits(rows pgx.Rows) ([]Split, error) {
	defer rows.Close()
	var splits []Split
	for rows.Next() {
		var (
			key                 limit.Key
			r                   RegionShare
			s                   Split
			observedAt, expires *time.Time
		)
		err := rows.Scan(&key.Tenant, &key.Route, &r.Region, &r.Target, &r.Observed, &observedAt, &r.Base,
			&r.Pin, &expires, &s.Reason, &s.By, &s.At, &s.Term, &s.Cycle)
		if err != nil {
			return nil, err
		}
		if observedAt != nil {
			r.ObservedAt = *observedAt
		}
		if expires != nil {
			r.PinExpires = *expires
		}
		if n := len(splits); n == 0 || splits[n-1].Key != key {
			s.Key = key
			splits = append(splits, s)
		}
		last := &splits[len(splits)-1]
		if s.At.After(last.At) {
			last.Reason, last.By, last.At, last.Term, last.Cycle = s.Reason, s.By, s.At, s.Term, s.Cycle
		}
		last.Regions = append(last.Regions, r)
	}
	return splits, rows.Err()
}
