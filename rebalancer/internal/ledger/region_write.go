package ledger

import (
	"context"
	"maps"
	"slices"

	"github.com/jackc/pgx/v5"

	"partidor.dev/partidor/shared/limit"
)

// PutBase configures the base split: the named regions are all there are; new ones are added with an empty failure
// domain. What gateways use follows step by step (PROTOCOL R15). A region that is left out must be drained or dead.
func (p *Postgres) PutBase(ctx context.Context, e Edit, base limit.Split) (d Diff[[]Region], err error) {
	if err := base.Validate(); err != nil {
		return d, &FieldError{Field: "base", Reason: err.Error()}
	}
	err = p.edit(ctx, "configure the base split", e, func(tx pgx.Tx) error {
		before, err := readRegions(ctx, tx, forUpdate)
		if err != nil {
			return err
		}
		for _, r := range before {
			if _, stays := base[r.Name]; !stays && r.State == RegionActive {
				return &FieldError{Field: "base", Reason: "region " + r.Name + " is missing; drain it or declare it dead first"}
			}
		}
		for _, name := range slices.Sorted(maps.Keys(base)) {
			_, err := tx.Exec(ctx, `INSERT INTO region (name, base_share) VALUES ($1, $2)
				ON CONFLICT (name) DO UPDATE SET base_share = excluded.base_share`, name, base[name])
			if err != nil {
				return err
			}
		}
		if _, err := tx.Exec(ctx, `UPDATE region SET base_share = 0 WHERE NOT name = ANY ($1)`, slices.Collect(maps.Keys(base))); err != nil {
			return err
		}
		after, err := readRegions(ctx, tx, "")
		d.Before, d.After = &before, &after
		return err
	})
	return d, err
}

// PutRegionState drains a region, declares it dead, or restores it.
func (p *Postgres) PutRegionState(ctx context.Context, e Edit, name, state string) (d Diff[Region], err error) {
	err = p.edit(ctx, "set state of region "+name, e, func(tx pgx.Tx) error {
		regions, err := readRegions(ctx, tx, forUpdate)
		if err != nil {
			return err
		}
		i := slices.IndexFunc(regions, func(r Region) bool { return r.Name == name })
		if i < 0 {
			return ErrNotFound
		}
		d.Before = &regions[i]
		active := slices.ContainsFunc(regions, func(r Region) bool { return r.Name != name && r.State == RegionActive })
		if state != RegionActive && !active {
			return &FieldError{Field: "state", Reason: "no other region is active"}
		}
		if _, err := tx.Exec(ctx, `UPDATE region SET state = $1 WHERE name = $2`, state, name); err != nil {
			return err
		}
		after, err := readRegions(ctx, tx, "")
		if err == nil {
			d.After = &after[i]
		}
		return err
	})
	return d, err
}
