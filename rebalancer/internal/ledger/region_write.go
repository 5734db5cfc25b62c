package ledger

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/jackc/pgx/v5"

	"partidor.dev/partidor/shared/limit"
)

// RegionChange is what is said of one region; what is nil stays as it is. A floor of 0 leaves it to the parameter floor, an
// empty domain is none.
type RegionChange struct {
	Base   *limit.Share `json:"base,omitempty"`
	Floor  *limit.Share `json:"floor,omitempty"`
	Domain *string      `json:"domain,omitempty"`
	State  *string      `json:"state,omitempty"`
}

// PutRegions configures the regions as a whole: those that are named, each with its base share, are all there are, and new
// ones are added. What gateways use of the base split follows step by step (PROTOCOL R15). A region that is left out must be
// drained or dead. The condition is about the newest revision of any region.
func (p *Postgres) PutRegions(ctx context.Context, e Edit, declared map[string]RegionChange) (d Diff[[]Region], err error) {
	base := make(limit.Split, len(declared))
	for name, c := range declared {
		if c.Base == nil {
			return d, &FieldError{Field: "regions." + name + ".base", Reason: "missing"}
		}
		base[name] = *c.Base
	}
	if err := base.Validate(); err != nil {
		return d, &FieldError{Field: "regions", Reason: err.Error()}
	}
	err = p.edit(ctx, "configure the regions", e, func(tx pgx.Tx) error {
		before, err := readRegions(ctx, tx, forUpdate)
		if err != nil {
			return err
		}
		if err := checkRegions(ctx, tx, e.Condition, "", len(before) > 0); err != nil {
			return err
		}
		for _, r := range before {
			if _, stays := base[r.Name]; !stays && r.State == RegionActive {
				return &FieldError{Field: "regions", Reason: "region " + r.Name + " is missing; drain it or declare it dead first"}
			}
		}
		for _, name := range slices.Sorted(maps.Keys(base)) {
			if _, err := tx.Exec(ctx, `INSERT INTO region (name, base_share) VALUES ($1, $2) ON CONFLICT (name) DO NOTHING`, name, base[name]); err != nil {
				return err
			}
		}
		if _, err := tx.Exec(ctx, `UPDATE region SET base_share = 0 WHERE NOT name = ANY ($1)`, slices.Collect(maps.Keys(base))); err != nil {
			return err
		}
		for _, name := range slices.Sorted(maps.Keys(declared)) {
			if _, err := changeRegion(ctx, tx, name, declared[name]); err != nil {
				return within("regions."+name, err)
			}
		}
		after, err := readRegions(ctx, tx, "")
		d.Before, d.After = &before, &after
		return err
	})
	return d, err
}

// PutRegion changes what is said of one region, but for its base share, which is said of all together.
func (p *Postgres) PutRegion(ctx context.Context, e Edit, name string, c RegionChange) (d Diff[Region], err error) {
	if c.Base != nil {
		return d, &FieldError{Field: "base", Reason: "the base shares of all regions are configured together"}
	}
	err = p.edit(ctx, "change region "+name, e, func(tx pgx.Tx) error {
		regions, err := readRegions(ctx, tx, forUpdate)
		if err != nil {
			return err
		}
		i := slices.IndexFunc(regions, func(r Region) bool { return r.Name == name })
		if i < 0 {
			return ErrNotFound
		}
		d.Before = &regions[i]
		if err := checkRegions(ctx, tx, e.Condition, name, true); err != nil {
			return err
		}
		d.After, err = changeRegion(ctx, tx, name, c)
		return err
	})
	return d, err
}

// changeRegion writes one region that exists and answers it as it is then. The rows are locked.
func changeRegion(ctx context.Context, tx pgx.Tx, name string, c RegionChange) (*Region, error) {
	if c.State != nil {
		switch *c.State {
		case RegionActive, RegionDraining, RegionDead:
		default:
			return nil, &FieldError{Field: "state", Reason: "must be active, draining or dead"}
		}
	}
	if c.Domain != nil && *c.Domain != "" && limit.ValidateName("domain", *c.Domain) != nil {
		return nil, &FieldError{Field: "domain", Reason: "must be a name of at most 64 bytes"}
	}
	if c.Floor != nil && (*c.Floor < 0 || *c.Floor > limit.Whole) {
		return nil, &FieldError{Field: "floor", Reason: "must be from 0 to 1000000 parts per million"}
	}
	_, err := tx.Exec(ctx, `UPDATE region SET state = coalesce($2, state), failure_domain = coalesce($3, failure_domain), base_share = coalesce($5, base_share),
			floor_share = CASE WHEN $4::int IS NULL THEN floor_share ELSE nullif($4::int, 0) END WHERE name = $1`, name, c.State, c.Domain, c.Floor, c.Base)
	if err != nil {
		return nil, err
	}
	regions, err := readRegions(ctx, tx, "")
	if err != nil {
		return nil, err
	}
	if !slices.ContainsFunc(regions, func(r Region) bool { return r.State == RegionActive }) {
		return nil, &FieldError{Field: "state", Reason: "no other region is active"}
	}
	r := &regions[slices.IndexFunc(regions, func(r Region) bool { return r.Name == name })]
	// The floors of all regions must fit into one limit: where rights are lost nothing but the floors counts.
	if r.Floor > r.Base {
		return nil, &FieldError{Field: "floor", Reason: fmt.Sprintf("%d, must not be above the base share of %d", r.Floor, r.Base)}
	}
	return r, nil
}

// checkRegions holds c against one region, or all where name is empty: nothing that people configure may have been changed
// since the revision in c. What the leader publishes step by step does not matter.
func checkRegions(ctx context.Context, tx pgx.Tx, c Condition, name string, exists bool) error {
	if c.Absent && exists || c.Revision != nil && !exists {
		return ErrConflict
	}
	if c.Revision == nil {
		return nil
	}
	var changed bool
	err := tx.QueryRow(ctx, `SELECT EXISTS (SELECT FROM history WHERE kind = 'region' AND ($1 = '' OR name = $1)
		AND (revision_epoch, revision_number) > ($2, $3) AND before - $4::text[] IS DISTINCT FROM after - $4::text[])`,
		name, c.Revision.Epoch, c.Revision.Number,
		[]string{"published_share", "earlier_shares", "updated_at", "updated_by", "reason", "revision_epoch", "revision_number"}).Scan(&changed)
	if err == nil && changed {
		err = ErrConflict
	}
	return err
}

// within says of which part of the whole a fault is.
func within(part string, err error) error {
	var f *FieldError
	if errors.As(err, &f) {
		return &FieldError{Field: part + "." + f.Field, Reason: f.Reason}
	}
	return err
}
