package rules

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/jackc/pgx/v5"

	"partidor.dev/partidor/shared/limit"
)

// Channel is where the ledger's triggers announce revisions.
const Channel = "partidor_changed"

const (
	listenRetry = time.Second
	// askAgain is how often a replica is asked whether it has become a primary.
	askAgain = time.Minute
)

var errReplica = errors.New("the database is a replica, which cannot LISTEN")

// Listener hears what a primary database announces. It is a short cut only: the poll and the rebalancer's event over NATS
// bring the same news.
type Listener struct {
	// Config of the connection, one of its own: it waits for ever.
	Config *pgx.ConnConfig
	// Announce takes each revision, Look is called when some may have been missed.
	Announce func(context.Context, limit.Revision)
	Look     func()
	Logger   *slog.Logger
}

// Run listens until ctx ends.
func (l *Listener) Run(ctx context.Context) error {
	delay, failed := listenRetry, false
	for ctx.Err() == nil {
		heard, err := l.listen(ctx)
		wait := delay
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, errReplica):
			wait = askAgain
		case heard:
			delay, wait = listenRetry, listenRetry
			l.Look() // if the database has gone, it is as well known now as at the next poll
		}
		if !failed || heard {
			l.Logger.InfoContext(ctx, "not listening to the ledger, the poll goes on", "error", err)
		}
		failed = true
		delay = min(2*delay, askAgain)
		select {
		case <-ctx.Done():
		case <-time.After(wait/2 + rand.N(wait/2+1)):
		}
	}
	return nil
}

// listen hears one connection out. heard tells that it worked for a while.
func (l *Listener) listen(ctx context.Context) (heard bool, err error) {
	connecting, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	conn, err := pgx.ConnectConfig(connecting, l.Config)
	if err != nil {
		return false, fmt.Errorf("connect: %w", err)
	}
	defer func() {
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		_ = conn.Close(closing)
	}()
	var replica bool
	if err := conn.QueryRow(connecting, "SELECT pg_is_in_recovery()").Scan(&replica); err != nil {
		return false, fmt.Errorf("ask for recovery: %w", err)
	}
	if replica {
		return false, errReplica
	}
	if _, err := conn.Exec(connecting, "LISTEN "+Channel); err != nil {
		return false, fmt.Errorf("listen: %w", err)
	}
	l.Look()
	for {
		n, err := conn.WaitForNotification(ctx)
		if err != nil {
			return true, fmt.Errorf("wait for notification: %w", err)
		}
		if at, err := limit.ParseRevision(n.Payload); err == nil {
			l.Announce(ctx, at)
		} else {
			l.Look()
		}
	}
}
