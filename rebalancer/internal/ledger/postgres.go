package ledger

import (
	"context"
	"fmt"
	"time"

	"github.com/exaring/otelpgx"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/trace"
)

// Postgres is the ledger proper. It is safe for use by many goroutines.
type Postgres struct {
	pool *pgxpool.Pool
	// election has connections of its own: a leader that queued behind readers of long tables would lose its lease.
	election *pgxpool.Pool
}

// stalledWriter is how long PostgreSQL lets a transaction of ours sit idle. A process that is stopped between a write
// and its commit would otherwise hold locks that the next leader waits for.
const stalledWriter = 2 * time.Second

// connectTimeout bounds a new connection to each host of a URL that says nothing else (connect_timeout). It goes on when whoever
// asked has given up, and serves the next: a server that takes seconds to let somebody in is slow, not away.
const connectTimeout = 10 * time.Second

// electionConns is a call that is under way and the one that follows it.
const electionConns = 2

// Open makes the pool; it connects when first used, so that a rebalancer starts while PostgreSQL is away. meters may be nil.
func Open(ctx context.Context, url string, maxConns int, tracers trace.TracerProvider, meters metric.MeterProvider) (*Postgres, error) {
	if meters == nil {
		meters = noop.NewMeterProvider()
	}
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, fmt.Errorf("ledger: database url: %w", err)
	}
	if maxConns > 0 {
		config.MaxConns = int32(min(maxConns, 1000))
	}
	c := config.ConnConfig
	c.Tracer = otelpgx.NewTracer(otelpgx.WithTracerProvider(tracers), otelpgx.WithMeterProvider(meters))
	if c.ConnectTimeout <= 0 || c.ConnectTimeout > time.Minute {
		c.ConnectTimeout = connectTimeout
	}
	// Of several hosts only the primary is of use. A standby would be kept for as long as it answers.
	c.ValidateConnect = pgconn.ValidateConnectTargetSessionAttrsReadWrite
	c.RuntimeParams["application_name"] = "partidor-rebalancer"
	c.RuntimeParams["idle_in_transaction_session_timeout"] = fmt.Sprint(stalledWriter.Milliseconds())
	// A fail-over behind a proxy may leave connections to a server that became a standby: they are replaced within this time
	// even if idle.
	config.MaxConnLifetime = 10 * time.Minute
	config.HealthCheckPeriod = 10 * time.Second
	election := config.Copy()
	election.MaxConns, election.MinConns = electionConns, 0
	p := &Postgres{}
	if p.pool, err = pgxpool.NewWithConfig(ctx, config); err != nil {
		return nil, fmt.Errorf("ledger: %w", err)
	}
	if p.election, err = pgxpool.NewWithConfig(ctx, election); err != nil {
		p.pool.Close()
		return nil, fmt.Errorf("ledger: %w", err)
	}
	if err := otelpgx.RecordStats(p.pool, otelpgx.WithStatsMeterProvider(meters)); err != nil {
		p.Close()
		return nil, fmt.Errorf("ledger: metrics of the pool: %w", err)
	}
	return p, nil
}

// Close waits for connections in use and ends them all.
func (p *Postgres) Close() {
	p.election.Close()
	p.pool.Close()
}

// Ping tells whether a primary with our schema answers.
func (p *Postgres) Ping(ctx context.Context) error {
	var standby bool
	if err := p.pool.QueryRow(ctx, `SELECT pg_is_in_recovery() FROM ledger_revision`).Scan(&standby); err != nil {
		return fmt.Errorf("ledger: %w", err)
	}
	if standby {
		return fmt.Errorf("ledger: the server is a standby")
	}
	return nil
}

// snapshot runs read in one REPEATABLE READ transaction: it sees whole transactions of others or nothing of them.
func (p *Postgres) snapshot(ctx context.Context, attempt string, read func(pgx.Tx) error) error {
	return wrap(attempt, pgx.BeginTxFunc(ctx, p.pool, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}, read))
}

// Author is on whose behalf a change is made, and why. It goes into the history.
type Author struct {
	Actor  string
	Reason string
}

// change runs write in one transaction on behalf of by. An error leaves nothing behind.
func (p *Postgres) change(ctx context.Context, attempt string, by Author, write func(pgx.Tx) error) error {
	return wrap(attempt, pgx.BeginFunc(ctx, p.pool, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `SELECT set_config('partidor.actor', $1, true), set_config('partidor.reason', $2, true)`, by.Actor, by.Reason)
		if err != nil {
			return err
		}
		return write(tx)
	}))
}
