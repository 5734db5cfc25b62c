package app

import (
	"context"
	"errors"
	"sync"
	"time"

	"partidor.dev/partidor/rebalancer/internal/api"
	"partidor.dev/partidor/rebalancer/internal/leader"
	"partidor.dev/partidor/rebalancer/internal/ledger"
	"partidor.dev/partidor/rebalancer/internal/upkeep"
	"partidor.dev/partidor/shared/limit"
)

// store is the ledger in either form.
type store interface {
	api.Ledger
	upkeep.Ledger
	Refresh(ctx context.Context, m *ledger.Mirror) error
	Commit(ctx context.Context, d ledger.Decision) error
	RegionLeases(ctx context.Context) (map[string]ledger.RegionLease, error)
	NoteLease(ctx context.Context, term int64, region string, fences bool, floor limit.Share) error
	TakeIncarnation(ctx context.Context, term int64, region string, above int64) (int64, error)
	Publish(ctx context.Context, term int64, holder string, seen []ledger.Region, shares map[string]limit.Share) error
	// Listen calls changed with the newest revision, first at once and then after every change, until ctx ends or the
	// connection breaks; and requested whenever somebody asks for a cycle.
	Listen(ctx context.Context, changed func(limit.Revision), requested func()) error
}

// lease is the leader row in PostgreSQL, as the election wants it. It remembers what it saw last, for people.
type lease struct {
	ledger *ledger.Postgres

	mu   sync.Mutex
	last ledger.Lease
	at   time.Time
	err  error
}

func (l *lease) Read(ctx context.Context) (leader.Row, error) {
	row, err := l.ledger.ReadLease(ctx)
	l.see(row, err)
	return leader.Row{Term: row.Term, Holder: row.Holder, Renewals: row.Renewals}, err
}

func (l *lease) Take(ctx context.Context, seen leader.Row, holder string) (int64, error) {
	term, err := l.ledger.TakeLease(ctx, ledger.Lease{Term: seen.Term, Renewals: seen.Renewals}, holder)
	if errors.Is(err, ledger.ErrConflict) {
		err = leader.ErrLost
	}
	return term, err
}

func (l *lease) Renew(ctx context.Context, term int64) error {
	row, err := l.ledger.RenewLease(ctx, term)
	l.see(row, err)
	if errors.Is(err, ledger.ErrFenced) {
		err = leader.ErrLost
	}
	return err
}

func (l *lease) Resign(ctx context.Context, term int64) error { return l.ledger.ResignLease(ctx, term) }

func (l *lease) see(row ledger.Lease, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err = err; err == nil {
		l.last, l.at = row, time.Now()
	}
}

// seen is the row as last read, when, and why not again since.
func (l *lease) seen() (ledger.Lease, time.Time, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.last, l.at, l.err
}
