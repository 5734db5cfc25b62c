package ledger

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
)

// Lease is the leader row as last read.
type Lease struct {
	Term     int64
	Holder   string // "" where nobody leads
	Renewals int64
	// Since, DecidedAt and Cycle are for people and metrics, by PostgreSQL's clock. DecidedAt is zero before the first cycle.
	Since     time.Time
	DecidedAt time.Time
	Cycle     int64
}

// ReadLease reads the leader row.
func (p *Postgres) ReadLease(ctx context.Context) (Lease, error) {
	var (
		l       Lease
		decided *time.Time
	)
	err := p.pool.QueryRow(ctx, `SELECT term, holder, renewals, since, decided_at, cycle FROM leader`).
		Scan(&l.Term, &l.Holder, &l.Renewals, &l.Since, &decided, &l.Cycle)
	if decided != nil {
		l.DecidedAt = *decided
	}
	return l, wrap("read the lease", err)
}

// TakeLease makes holder the leader under the next term, if nothing has changed since seen was read; else ErrConflict.
// Terms of a new ledger epoch begin above all that an older one can have given out.
func (p *Postgres) TakeLease(ctx context.Context, seen Lease, holder string) (term int64, err error) {
	err = p.pool.QueryRow(ctx, `UPDATE leader SET term = greatest(term, ledger_observe_timeline() << 32) + 1,
			holder = $3, renewals = renewals + 1, since = now(), renewed_at = now()
		 WHERE term = $1 AND renewals = $2 RETURNING term`, seen.Term, seen.Renewals, holder).Scan(&term)
	if errors.Is(err, pgx.ErrNoRows) {
		err = ErrConflict
	}
	return term, wrap("take the lease", err)
}

// RenewLease prolongs the lease of term; ErrFenced once it has been taken.
func (p *Postgres) RenewLease(ctx context.Context, term int64) error {
	tag, err := p.pool.Exec(ctx, `UPDATE leader SET renewals = renewals + 1, renewed_at = now() WHERE term = $1`, term)
	if err == nil && tag.RowsAffected() == 0 {
		err = ErrFenced
	}
	return wrap("renew the lease", err)
}

// ResignLease lets others lead at once. It does nothing where term is over.
func (p *Postgres) ResignLease(ctx context.Context, term int64) error {
	_, err := p.pool.Exec(ctx, `UPDATE leader SET holder = '', renewals = renewals + 1 WHERE term = $1`, term)
	return wrap("resign the lease", err)
}
