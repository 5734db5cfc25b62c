package ledger

import (
	"context"
	"encoding/json"

	"github.com/jackc/pgx/v5"

	"partidor.dev/partidor/shared/limit"
)

// ParameterRows are the rows as they are, whatever they mean.
func (p *Postgres) ParameterRows(ctx context.Context) (list []Parameter, err error) {
	err = p.snapshot(ctx, "read parameters", func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, selectParameter+`ORDER BY name`)
		if err != nil {
			return err
		}
		list, err = pgx.CollectRows(rows, scanParameter)
		return err
	})
	return list, err
}

// PutParameter sets a parameter; a nil value goes back to the default of the program.
func (p *Postgres) PutParameter(ctx context.Context, e Edit, name string, value json.RawMessage) (d Diff[Parameter], err error) {
	err = p.edit(ctx, "set parameter "+name, e, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, selectParameter+`WHERE name = $1 FOR UPDATE`, name)
		if err != nil {
			return err
		}
		if d.Before, err = optional(pgx.CollectOneRow(rows, scanParameter)); err != nil {
			return err
		}
		if err := checkOf(e.Condition, d.Before, func(p *Parameter) limit.Revision { return p.Revision }); err != nil {
			return err
		}
		if value == nil {
			_, err = tx.Exec(ctx, `DELETE FROM parameter WHERE name = $1`, name)
			return err
		}
		rows, err = tx.Query(ctx, `INSERT INTO parameter AS p (name, value) VALUES ($1, $2)
			ON CONFLICT (name) DO UPDATE SET value = excluded.value
			RETURNING name, value, reason, updated_at, updated_by, revision_epoch, revision_number`, name, value)
		if err != nil {
			return err
		}
		d.After, err = optional(pgx.CollectOneRow(rows, scanParameter))
		return err
	})
	return d, err
}
