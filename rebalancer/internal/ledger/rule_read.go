package ledger

import (
	"context"

	"github.com/jackc/pgx/v5"

	"partidor.dev/partidor/shared/limit"
)

var revisionZero limit.Revision

// Filter says which part of a list is wanted. Empty fields do not matter.
type Filter struct {
	Tenant, Route string
	// Part that the tenant's or the route's name must hold.
	Part string
	// After is where the last page ended, and Limit how many items are wanted.
	After [2]string
	Limit int
}

// Rules in the order of tenant and route.
func (p *Postgres) Rules(ctx context.Context, f Filter) (rules []Rule, err error) {
	err = p.snapshot(ctx, "list rules", func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, selectRule+`
			WHERE ($1 = '' OR tenant_id = $1) AND ($2 = '' OR route_id = $2)
			  AND ($3 = '' OR strpos(tenant_id, $3) > 0 OR strpos(route_id, $3) > 0)
			  AND (tenant_id, route_id) > ($4, $5)
			ORDER BY tenant_id, route_id LIMIT $6`, f.Tenant, f.Route, f.Part, f.After[0], f.After[1], f.Limit)
		if err != nil {
			return err
		}
		rules, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (Rule, error) { return scanRule(row) })
		return err
	})
	return rules, err
}

// RuleOf is the rule written for exactly (tenant, route); ErrNotFound where there is none.
func (p *Postgres) RuleOf(ctx context.Context, tenant, route string) (Rule, error) {
	var rule *Rule
	err := p.snapshot(ctx, "read rule of "+tenant+"/"+route, func(tx pgx.Tx) (err error) {
		rule, err = optional(scanRule(tx.QueryRow(ctx, selectRule+`WHERE tenant_id = $1 AND route_id = $2`, tenant, route)))
		if err == nil && rule == nil {
			err = ErrNotFound
		}
		return err
	})
	if err != nil {
		return Rule{}, err
	}
	return *rule, nil
}
