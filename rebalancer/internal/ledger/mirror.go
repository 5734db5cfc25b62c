package ledger

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"partidor.dev/partidor/shared/limit"
)

// Mirror is a copy of what plans rest on, kept up to date by increments. It belongs to one goroutine.
type Mirror struct {
	// Revision up to which Rules, Regions and Parameters are known.
	Revision   limit.Revision
	Rules      *Rules
	Regions    []Region
	Parameters map[string]Parameter
	Splits     map[limit.Key]Split
	// Faulty counts rows of the last load that could not be understood; what was known of them before is kept.
	Faulty int

	splitsAt time.Time // PostgreSQL's time of the last look at the splits
}

// splitOverlap is how far back an increment of splits reaches: longer than any transaction that writes them.
const splitOverlap = time.Minute

// Refresh brings m up to date, from nothing where it is the zero value or the ledger's epoch has risen.
func (p *Postgres) Refresh(ctx context.Context, m *Mirror) error {
	next := *m
	err := p.snapshot(ctx, "read the ledger", func(tx pgx.Tx) error {
		var at limit.Revision
		if err := tx.QueryRow(ctx, `SELECT epoch, number FROM ledger_revision`).Scan(&at.Epoch, &at.Number); err != nil {
			return err
		}
		if next.Rules == nil || at.Epoch != next.Revision.Epoch {
			next = Mirror{Rules: NewRules(), Parameters: make(map[string]Parameter), Splits: make(map[limit.Key]Split)}
		}
		next.Faulty = 0
		if at.Newer(next.Revision) {
			if err := next.readIncrement(ctx, tx); err != nil {
				return err
			}
			next.Revision = at
		}
		return next.readSplits(ctx, tx)
	})
	if err != nil {
		// The maps may hold part of an increment; reading it again repairs that, since Revision has not moved.
		return err
	}
	*m = next
	return nil
}

func (m *Mirror) readIncrement(ctx context.Context, tx pgx.Tx) (err error) {
	if m.Regions, err = readRegions(ctx, tx, ""); err != nil {
		return err
	}
	rows, err := tx.Query(ctx, `SELECT kind, tenant_id, route_id, name FROM tombstone WHERE (revision_epoch, revision_number) > ($1, $2)`,
		m.Revision.Epoch, m.Revision.Number)
	if err != nil {
		return err
	}
	var kind, tenant, route, name string
	_, err = pgx.ForEachRow(rows, []any{&kind, &tenant, &route, &name}, func() error {
		switch kind {
		case "rule":
			m.Rules.Delete(tenant, route)
		case "tenant":
			m.Rules.SetPlan(tenant, "")
		case "parameter":
			delete(m.Parameters, name)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if err := m.readRules(ctx, tx); err != nil {
		return err
	}
	rows, err = tx.Query(ctx, `SELECT id, plan FROM tenant WHERE (revision_epoch, revision_number) > ($1, $2)`, m.Revision.Epoch, m.Revision.Number)
	if err != nil {
		return err
	}
	var plan string
	if _, err = pgx.ForEachRow(rows, []any{&tenant, &plan}, func() error { m.Rules.SetPlan(tenant, plan); return nil }); err != nil {
		return err
	}
	rows, err = tx.Query(ctx, selectParameter+`WHERE (revision_epoch, revision_number) > ($1, $2)`, m.Revision.Epoch, m.Revision.Number)
	if err != nil {
		return err
	}
	changed, err := pgx.CollectRows(rows, scanParameter)
	for _, c := range changed {
		m.Parameters[c.Name] = c
	}
	return err
}

func (m *Mirror) readRules(ctx context.Context, tx pgx.Tx) error {
	rows, err := tx.Query(ctx, selectRule+`WHERE (revision_epoch, revision_number) > ($1, $2)`, m.Revision.Epoch, m.Revision.Number)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		r, err := scanRule(rows)
		if err != nil {
			return err
		}
		rule := r.Limit(r.Revision)
		if rule.Validate() != nil { // the CHECKs have let through what we cannot enforce
			m.Faulty++
			continue
		}
		m.Rules.Set(r.Tenant, r.Route, rule)
	}
	return rows.Err()
}

func (m *Mirror) readSplits(ctx context.Context, tx pgx.Tx) error {
	var now time.Time
	if err := tx.QueryRow(ctx, `SELECT now()`).Scan(&now); err != nil {
		return err
	}
	since := m.splitsAt
	if !since.IsZero() {
		since = since.Add(-splitOverlap)
	}
	rows, err := tx.Query(ctx, selectSplit+`WHERE (tenant_id, route_id) IN (SELECT tenant_id, route_id FROM split WHERE updated_at >= $1)
		ORDER BY tenant_id, route_id, region`, since)
	if err != nil {
		return err
	}
	splits, err := collectSplits(rows)
	if err != nil {
		return err
	}
	for _, s := range splits {
		m.Splits[s.Key] = s
	}
	m.splitsAt = now
	return nil
}
