package ledger

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"partidor.dev/partidor/shared/limit"
)

// Diff is one thing before and after a change; nil where it does not exist. Both are nil, or equal but for their stamps,
// where nothing changed.
type Diff[T any] struct {
	Before *T `json:"before,omitempty"`
	After  *T `json:"after,omitempty"`
}

// Condition guards a change against another that the writer has not seen.
type Condition struct {
	// Revision the thing must still have; nil does not matter.
	Revision *limit.Revision
	// Absent demands that the thing does not exist.
	Absent bool
}

// check compares with what is there: its revision, or false if nothing is.
func (c Condition) check(now limit.Revision, exists bool) error {
	if c.Absent && exists || c.Revision != nil && (!exists || *c.Revision != now) {
		return ErrConflict
	}
	return nil
}

// Edit is how a change is made.
type Edit struct {
	Author
	// Dry undoes the change at its end: everything is checked and answered, nothing is written.
	Dry bool
}

// errDry ends the transaction of a dry run.
var errDry = errors.New("dry run")

// edit runs write in one transaction as e says.
func (p *Postgres) edit(ctx context.Context, attempt string, e Edit, write func(pgx.Tx) error) error {
	err := p.change(ctx, attempt, e.Author, func(tx pgx.Tx) error {
		if err := write(tx); err != nil {
			return err
		}
		if e.Dry {
			// Constraints that wait for the commit are checked now.
			if _, err := tx.Exec(ctx, `SET CONSTRAINTS ALL IMMEDIATE`); err != nil {
				return err
			}
			return errDry
		}
		return nil
	})
	if errors.Is(err, errDry) {
		return nil
	}
	return err
}

// optional turns "no row" into nil.
func optional[T any](v T, err error) (*T, error) {
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return &v, nil
}
