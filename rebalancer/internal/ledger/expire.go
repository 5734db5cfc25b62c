package ledger

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"partidor.dev/partidor/shared/rulesfile"
)

// EndAhead is how long before its end an override gives back the rule it replaced. Gateways end rules by themselves, to the
// second; what comes back must be there by then, or the next match, perhaps the default, would hold and clamp in between.
const EndAhead = 5 * time.Second

// EndExpired takes back temporary rules whose time is over: the rule that an override had replaced returns, else the
// row goes and the next match holds. It tells how many there were.
func (p *Postgres) EndExpired(ctx context.Context, term int64) (ended int, err error) {
	by := Author{Actor: "rebalancer", Reason: "the temporary rule has expired"}
	err = p.change(ctx, "end expired rules", by, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, selectRule+`WHERE expires_at <= now() + $1::interval ORDER BY id FOR UPDATE`, EndAhead)
		if err != nil {
			return err
		}
		expired, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (Rule, error) { return scanRule(row) })
		if err != nil {
			return err
		}
		// One that cannot come back, because of what has been written since, must not keep the others from ending.
		if _, err := tx.Exec(ctx, `SET CONSTRAINTS ALL IMMEDIATE`); err != nil {
			return err
		}
		for i := range expired {
			done, err := endRule(ctx, tx, &expired[i])
			if err != nil {
				return err
			}
			if done {
				ended++
			}
		}
		return fence(ctx, tx, term)
	})
	return ended, err
}

// givesEnd is what is true of an entry of the history that gave a rule an end: what it keeps as before is what returns.
const givesEnd = `kind = 'rule' AND after ->> 'expires_at' IS NOT NULL AND before ->> 'expires_at' IS NULL`

// endRule restores what stood there before the entry of the history that first gave the rule an end. Where nothing did, or it
// is refused now, the row goes once its time is over; until then it is not done.
func endRule(ctx context.Context, tx pgx.Tx, r *Rule) (done bool, err error) {
	var before []byte
	err = tx.QueryRow(ctx, `SELECT before FROM history WHERE tenant_id = $1 AND route_id = $2 AND `+givesEnd+`
		ORDER BY id DESC LIMIT 1`, r.Tenant, r.Route).Scan(&before)
	if found, err := optional(before, err); err != nil {
		return false, err
	} else if found != nil && len(*found) > 0 {
		was, err := RuleOfHistory(*found)
		if err != nil {
			return false, err
		}
		was.Reason = "the temporary rule has expired"
		err = pgx.BeginFunc(ctx, tx, func(tx pgx.Tx) error { return upsertRules(ctx, tx, []rulesfile.Rule{was}) })
		var refused *FieldError
		if !errors.As(wrap("restore", err), &refused) {
			return err == nil, err
		}
	}
	tag, err := tx.Exec(ctx, `DELETE FROM rate_limit_rule WHERE id = $1 AND expires_at <= now()`, r.ID)
	return tag.RowsAffected() > 0, err
}
