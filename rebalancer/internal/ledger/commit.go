package ledger

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/jackc/pgx/v5"

	"partidor.dev/partidor/shared/limit"
)

// Decision is what one cycle of the leader has to write down.
type Decision struct {
	Term, Cycle int64
	// Holder is the leader's name, the actor in the history.
	Holder string
	// Regions gives the order of every slice of shares below.
	Regions []string
	Changes []Change
	// Observed are the shares that regions report as in force, for keys that have a split.
	Observed []Observation
}

// Change is a key's new target. After adds up to limit.Whole.
type Change struct {
	Key    limit.Key
	Before []limit.Share
	After  []limit.Share
	Reason string
}

// Observation is what the regions report of one key.
type Observation struct {
	Key limit.Key
	// Shares in force, Unreported where a region has said nothing.
	Shares []limit.Share
	// Base is nil, or says that these shares cannot be the key's base shares, and which those are: from now on the key counts as
	// moved, and has that base for ever.
	Base []limit.Share
}

// Unreported in Observation.Shares marks a region that has said nothing.
const Unreported limit.Share = -1

// commitKeys bounds a transaction: no lock is held for longer than it takes to write so many keys.
const commitKeys = 2000

// Commit writes a decision in transactions of some thousand keys, each of them fenced: all of a key or nothing of it. It
// fails with ErrFenced from the moment another leader has taken over.
func (p *Postgres) Commit(ctx context.Context, d Decision) error {
	by := Author{Actor: "rebalancer " + d.Holder}
	for changes := range slices.Chunk(d.Changes, commitKeys) {
		err := p.change(ctx, "commit splits", by, func(tx pgx.Tx) error {
			if err := writeChanges(ctx, tx, &d, changes); err != nil {
				return err
			}
			return fence(ctx, tx, d.Term)
		})
		if err != nil {
			return err
		}
	}
	for observed := range slices.Chunk(d.Observed, commitKeys) {
		err := p.change(ctx, "commit observed shares", by, func(tx pgx.Tx) error {
			if err := writeObserved(ctx, tx, &d, observed); err != nil {
				return err
			}
			return fence(ctx, tx, d.Term)
		})
		if err != nil {
			return err
		}
	}
	return p.change(ctx, "commit cycle", by, func(tx pgx.Tx) error {
		if err := fence(ctx, tx, d.Term); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, `UPDATE leader SET cycle = $1, decided_at = now() WHERE term = $2`, d.Cycle, d.Term)
		return err
	})
}

// fence goes last: what it locks keeps a take-over waiting for the commit that follows at once.
func fence(ctx context.Context, tx pgx.Tx, term int64) error {
	_, err := tx.Exec(ctx, `SELECT ledger_fence($1)`, term)
	return err
}

func writeChanges(ctx context.Context, tx pgx.Tx, d *Decision, changes []Change) error {
	var (
		tenants, routes, regions, reasons []string
		targets                           []int32
		keyTenants, keyRoutes, keyReasons []string
		before, after                     []string
	)
	for i := range changes {
		c := &changes[i]
		for j, region := range d.Regions {
			tenants, routes = append(tenants, c.Key.Tenant), append(routes, c.Key.Route)
			regions, targets = append(regions, region), append(targets, int32(c.After[j]))
			reasons = append(reasons, c.Reason)
		}
		keyTenants, keyRoutes, keyReasons = append(keyTenants, c.Key.Tenant), append(keyRoutes, c.Key.Route), append(keyReasons, c.Reason)
		before, after = append(before, sharesJSON(d.Regions, c.Before)), append(after, sharesJSON(d.Regions, c.After))
	}
	// A pin or a target set by a person since the plan was made does not matter here: the next plan takes it into account.
	_, err := tx.Exec(ctx, `INSERT INTO split AS s (tenant_id, route_id, region, target_share, term, cycle, updated_by, reason)
		SELECT tenant_id, route_id, region, target, $6, $7, $8, reason
		  FROM unnest($1::text[], $2::text[], $3::text[], $4::int[], $5::text[]) AS c (tenant_id, route_id, region, target, reason)
		ON CONFLICT (tenant_id, route_id, region) DO UPDATE
		   SET target_share = excluded.target_share, term = excluded.term, cycle = excluded.cycle,
		       updated_by = excluded.updated_by, reason = excluded.reason, updated_at = now()`,
		tenants, routes, regions, targets, reasons, d.Term, d.Cycle, "rebalancer "+d.Holder)
	if err != nil {
		return err
	}
	_, err = tx.Exec(ctx, `INSERT INTO history (kind, operation, tenant_id, route_id, actor, reason, before, after, term, cycle)
		SELECT 'split', 'plan', tenant_id, route_id, $6, reason, before::jsonb, after::jsonb, $7, $8
		  FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[]) AS c (tenant_id, route_id, reason, before, after)`,
		keyTenants, keyRoutes, keyReasons, before, after, "rebalancer "+d.Holder, d.Term, d.Cycle)
	return err
}

func writeObserved(ctx context.Context, tx pgx.Tx, d *Decision, observed []Observation) error {
	var (
		tenants, routes, regions []string
		shares                   []int32
		movedTenants             []string
		movedRoutes              []string
		movedRegions             []string
		bases                    []int32
	)
	for i := range observed {
		o := &observed[i]
		for j, region := range d.Regions {
			if o.Shares[j] == Unreported {
				continue
			}
			tenants, routes = append(tenants, o.Key.Tenant), append(routes, o.Key.Route)
			regions, shares = append(regions, region), append(shares, int32(o.Shares[j]))
		}
		for j, base := range o.Base {
			movedTenants, movedRoutes = append(movedTenants, o.Key.Tenant), append(movedRoutes, o.Key.Route)
			movedRegions, bases = append(movedRegions, d.Regions[j]), append(bases, int32(base))
		}
	}
	_, err := tx.Exec(ctx, `UPDATE split s SET observed_share = o.share, observed_at = now()
		  FROM unnest($1::text[], $2::text[], $3::text[], $4::int[]) AS o (tenant_id, route_id, region, share)
		 WHERE s.tenant_id = o.tenant_id AND s.route_id = o.route_id AND s.region = o.region AND s.observed_share IS DISTINCT FROM o.share`,
		tenants, routes, regions, shares)
	if err != nil || len(movedTenants) == 0 {
		return err
	}
	// Noted for all regions of the key at once, and only once: a region that is added later has base 0 for this key.
	_, err = tx.Exec(ctx, `UPDATE split s SET base_share = o.base, moved_at = now()
		  FROM unnest($1::text[], $2::text[], $3::text[], $4::int[]) AS o (tenant_id, route_id, region, base)
		 WHERE s.tenant_id = o.tenant_id AND s.route_id = o.route_id AND s.region = o.region
		   AND NOT EXISTS (SELECT FROM split m WHERE m.tenant_id = o.tenant_id AND m.route_id = o.route_id AND m.base_share IS NOT NULL)`,
		movedTenants, movedRoutes, movedRegions, bases)
	return err
}

func sharesJSON(regions []string, shares []limit.Share) string {
	split := make(limit.Split, len(regions))
	for i, region := range regions {
		split[region] = shares[i]
	}
	out, err := json.Marshal(split) // a map of numbers cannot fail
	if err != nil {
		panic(err)
	}
	return string(out)
}
