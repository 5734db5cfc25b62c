package ledger

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"partidor.dev/partidor/shared/limit"
)

// listenCheck is how often a waiting listener asks whether the server still answers and whether its timeline has changed;
// a fail-over that sends no word is noticed within this time.
const listenCheck = 5 * time.Second

// Listen calls changed with the newest revision once at the start and after every transaction that took one, in order; and
// requested whenever somebody asks for a cycle (RequestCycle). It returns when ctx ends or the connection breaks; the
// caller calls again.
func (p *Postgres) Listen(ctx context.Context, changed func(limit.Revision), requested func()) error {
	conn, err := p.pool.Acquire(ctx)
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	raw := conn.Hijack() // its subscription must not go back into the pool
	defer func() {
		end, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		_ = raw.Close(end)
	}()
	if _, err := raw.Exec(ctx, `LISTEN partidor_changed; LISTEN partidor_run`); err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	last, err := observe(ctx, raw)
	if err != nil {
		return err
	}
	changed(last)
	for {
		wait, cancel := context.WithTimeout(ctx, listenCheck)
		said, err := raw.WaitForNotification(wait)
		idle := wait.Err() != nil
		cancel()
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil && !idle {
			return fmt.Errorf("listen: %w", err)
		}
		if said != nil && said.Channel == "partidor_run" {
			requested()
		}
		at, err := observe(ctx, raw)
		if err != nil {
			return err
		}
		if at.Newer(last) {
			changed(at)
			last = at
		}
	}
}

// RequestCycle asks the leader, wherever it is, for a cycle now.
func (p *Postgres) RequestCycle(ctx context.Context) error {
	_, err := p.pool.Exec(ctx, `SELECT pg_notify('partidor_run', '')`)
	return wrap("request a cycle", err)
}

// observe raises the epoch if PostgreSQL's timeline has changed, and answers the newest revision.
func observe(ctx context.Context, conn *pgx.Conn) (at limit.Revision, err error) {
	check, cancel := context.WithTimeout(ctx, listenCheck)
	defer cancel()
	if _, err = conn.Exec(check, `SELECT ledger_observe_timeline()`); err == nil {
		err = conn.QueryRow(check, `SELECT epoch, number FROM ledger_revision`).Scan(&at.Epoch, &at.Number)
	}
	return at, wrap("listen", err)
}
