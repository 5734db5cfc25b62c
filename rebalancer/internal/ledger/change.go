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

// checkOf is check for a thing that may not be there.
func checkOf[T any](c Condition, v *T, revision func(*T) limit.Revision) error {
	if v == nil {
		return c.check(limit.Revision{}, false)
	}
	return c.check(revision(v), true)
}

// Edit is how a change is made.
type Edit struct {
	Author
	// Condition that the thing must meet, else ErrConflict. Every change checks it.
	Condition
	// Dry undoes the change at its end: everything is checked and answered, nothing is written.
	Dry bool
}

// errDry ends the transaction of a dry run.
var errDry = errors.New("dry run")

// editors is the advisory lock that people's changes are made under, one after the other: what a condition was checked
// against is what is changed, also where nothing was there to be locked.
const editors = 0x7061727469646f72

// edit runs write in one transaction as e says.
func (p *Postgres) edit(ctx context.Context, attempt string, e Edit, write func(pgx.Tx) error) error {
	err := p.change(ctx, attempt, e.Author, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `SELECT pg_advisory_xact_lock($1)`, int64(editors)); err != nil {
			return err
		}
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
