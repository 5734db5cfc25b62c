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
	// Since, Cycle (the last one committed) and DecidedAgo (its age, −1 before the first) are for people and metrics, by
	// PostgreSQL's clock.
	Since      time.Time
	Cycle      int64
	DecidedAgo time.Duration
}

const leaseColumns = `term, holder, renewals, since, cycle, coalesce(extract(epoch FROM now() - decided_at), -1)::float8`

func scanLease(row pgx.Row) (l Lease, err error) {
	var ago float64
	err = row.Scan(&l.Term, &l.Holder, &l.Renewals, &l.Since, &l.Cycle, &ago)
	if l.DecidedAgo = -1; ago >= 0 {
		l.DecidedAgo = time.Duration(ago * float64(time.Second))
	}
	return l, err
}

// ReadLease reads the leader row.
func (p *Postgres) ReadLease(ctx context.Context) (Lease, error) {
	l, err := scanLease(p.election.QueryRow(ctx, `SELECT `+leaseColumns+` FROM leader`))
	return l, wrap("read the lease", err)
}

// TakeLease makes holder the leader under the next term, if nothing has changed since seen was read; else ErrConflict.
// Terms of a new ledger epoch begin above all that an older one can have given out.
func (p *Postgres) TakeLease(ctx context.Context, seen Lease, holder string) (term int64, err error) {
	err = p.election.QueryRow(ctx, `UPDATE leader SET term = greatest(term, ledger_observe_timeline() << 32) + 1,
			holder = $3, renewals = renewals + 1, since = now(), renewed_at = now()
		 WHERE term = $1 AND renewals = $2 RETURNING term`, seen.Term, seen.Renewals, holder).Scan(&term)
	if errors.Is(err, pgx.ErrNoRows) {
		err = ErrConflict
	}
	return term, wrap("take the lease", err)
}

// RenewLease prolongs the lease of term and answers the row; ErrFenced once it has been taken.
func (p *Postgres) RenewLease(ctx context.Context, term int64) (Lease, error) {
	l, err := scanLease(p.election.QueryRow(ctx,
		`UPDATE leader SET renewals = renewals + 1, renewed_at = now() WHERE term = $1 RETURNING `+leaseColumns, term))
	if errors.Is(err, pgx.ErrNoRows) {
		err = ErrFenced
	}
	return l, wrap("renew the lease", err)
}

// ResignLease lets others lead at once. It does nothing where term is over.
func (p *Postgres) ResignLease(ctx context.Context, term int64) error {
	_, err := p.election.Exec(ctx, `UPDATE leader SET holder = '', renewals = renewals + 1 WHERE term = $1`, term)
	return wrap("resign the lease", err)
}
