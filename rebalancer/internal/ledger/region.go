package ledger

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5"

	"partidor.dev/partidor/shared/limit"
)

// The states of a region. A draining region gets no share and gives what it has; a dead one is gone by an operator's word.
const (
	RegionActive   = "active"
	RegionDraining = "draining"
	RegionDead     = "dead"
)

// Region is one region of the deployment.
type Region struct {
	Name string `json:"name"`
	// Base is the configured base share, Published the one gateways use: see migration 00004.
	Base      limit.Share `json:"base"`
	Published limit.Share `json:"published"`
	// Floor is the share the region never gives away; 0 leaves it to the parameter floor.
	Floor  limit.Share `json:"floor,omitempty"`
	Domain string      `json:"domain,omitempty"`
	State  string      `json:"state"`
	// Revision of the last change.
	Revision limit.Revision `json:"revision"`
}

// Regions in the order of their names.
func (p *Postgres) Regions(ctx context.Context) (regions []Region, err error) {
	err = p.snapshot(ctx, "read regions", func(tx pgx.Tx) error {
		regions, err = readRegions(ctx, tx, "")
		return err
	})
	return regions, err
}

// forUpdate keeps others from changing the rows until the transaction ends.
const forUpdate = ` FOR UPDATE`

func readRegions(ctx context.Context, tx pgx.Tx, lock string) ([]Region, error) {
	rows, err := tx.Query(ctx, `SELECT name, base_share, published_share, coalesce(floor_share, 0), failure_domain, state,
		revision_epoch, revision_number FROM region ORDER BY name`+lock)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (r Region, err error) {
		err = row.Scan(&r.Name, &r.Base, &r.Published, &r.Floor, &r.Domain, &r.State, &r.Revision.Epoch, &r.Revision.Number)
		return r, err
	})
}

// Publish sets the published share of some regions, if no region has been changed since seen was read; else ErrConflict.
// ErrFenced where term is over.
func (p *Postgres) Publish(ctx context.Context, term int64, holder string, seen []Region, shares map[string]limit.Share) error {
	by := Author{Actor: "rebalancer " + holder, Reason: "base split published step by step"}
	return p.change(ctx, "publish the base split", by, func(tx pgx.Tx) error {
		now, err := readRegions(ctx, tx, forUpdate)
		if err != nil {
			return err
		}
		if !slices.Equal(now, seen) {
			return ErrConflict
		}
		for name, share := range shares {
			if _, err := tx.Exec(ctx, `UPDATE region SET published_share = $1 WHERE name = $2`, share, name); err != nil {
				return err
			}
		}
		return fence(ctx, tx, term)
	})
}
