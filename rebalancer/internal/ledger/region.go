package ledger

import (
	"context"

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
		regions, err = readRegions(ctx, tx)
		return err
	})
	return regions, err
}

func readRegions(ctx context.Context, tx pgx.Tx) ([]Region, error) {
	rows, err := tx.Query(ctx, `SELECT name, base_share, published_share, coalesce(floor_share, 0), failure_domain, state,
		revision_epoch, revision_number FROM region ORDER BY name`)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (r Region, err error) {
		err = row.Scan(&r.Name, &r.Base, &r.Published, &r.Floor, &r.Domain, &r.State, &r.Revision.Epoch, &r.Revision.Number)
		return r, err
	})
}
