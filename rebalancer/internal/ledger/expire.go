package ledger

import (
	"context"

	"github.com/jackc/pgx/v5"

	"partidor.dev/partidor/shared/rulesfile"
)

// EndExpired takes back temporary rules whose time is over: the rule that an override had replaced returns, else the
// row goes and the next match holds. It tells how many there were.
func (p *Postgres) EndExpired(ctx context.Context, term int64) (ended int, err error) {
	by := Author{Actor: "rebalancer", Reason: "the temporary rule has expired"}
	err = p.change(ctx, "end expired rules", by, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, selectRule+`WHERE expires_at <= now() ORDER BY id FOR UPDATE`)
		if err != nil {
			return err
		}
		expired, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (Rule, error) { return scanRule(row) })
		if err != nil {
			return err
		}
		for i := range expired {
			if err := endRule(ctx, tx, &expired[i]); err != nil {
				return err
			}
		}
		ended = len(expired)
		return fence(ctx, tx, term)
	})
	return ended, err
}

// endRule restores what stood there before the entry of the history that first gave the rule an end.
func endRule(ctx context.Context, tx pgx.Tx, r *Rule) error {
	var before []byte
	err := tx.QueryRow(ctx, `SELECT before FROM rule_history
		WHERE tenant_id = $1 AND route_id = $2 AND after ->> 'expires_at' IS NOT NULL AND before ->> 'expires_at' IS NULL
		ORDER BY id DESC LIMIT 1`, r.Tenant, r.Route).Scan(&before)
	if found, err := optional(before, err); err != nil {
		return err
	} else if found != nil && len(*found) > 0 {
		was, err := RuleOfHistory(*found)
		if err != nil {
			return err
		}
		was.Reason = "the temporary rule has expired"
		return upsertRules(ctx, tx, []rulesfile.Rule{was})
	}
	_, err = tx.Exec(ctx, `DELETE FROM rate_limit_rule WHERE id = $1`, r.ID)
	return err
}
