package rules_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"partidor.dev/partidor/gateway/internal/control/rules"
	"partidor.dev/partidor/gateway/internal/control/rules/ledgertest"
	"partidor.dev/partidor/gateway/internal/snapshot"
	"partidor.dev/partidor/shared/limit"
	"partidor.dev/partidor/shared/testenv"
)

// A gateway reads a replica, which cannot LISTEN. The primary dies and the replica is promoted: it writes another timeline,
// so the next change raises the epoch, and the gateway loads everything again.
func TestFailOverToAReplica(t *testing.T) {
	primary := testenv.StartPostgresServer(t)
	pg := primary.Database(t)
	conn := pg.Conn(t)
	ledgertest.Migrate(t, conn)
	exec := func(conn *pgx.Conn, sql string) {
		t.Helper()
		if _, err := conn.Exec(t.Context(), sql); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
	exec(conn, insertShopA)
	replica := primary.Replica(t)
	second := pg.Follow(replica)

	holder := snapshot.NewHolder("eu")
	loader := newLoader(t, rules.Options{Holder: holder, Source: rules.NewLedger(pool(t, second.URL), "eu", 0), Poll: time.Hour})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	if err := loader.Start(ctx); err != nil {
		t.Fatal(err)
	}
	config, err := pgx.ParseConfig(second.URL)
	if err != nil {
		t.Fatal(err)
	}
	listener := &rules.Listener{Config: config, Announce: loader.Announce, Look: loader.Look, Logger: slog.New(slog.DiscardHandler)}
	listening := make(chan struct{})
	go func() { defer close(done); _ = loader.Run(ctx) }()
	go func() { defer close(listening); _ = listener.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		<-done
		<-listening
	})
	capacity := func() int64 { return holder.Load().Lookup("shop-a", "create-order").Rule.Capacity }
	until := func(what string, ok func() bool) {
		t.Helper()
		eventually(t, 10*time.Second, what, ok)
	}

	// A replica cannot LISTEN: the news comes over NATS, and may be ahead of the replica.
	exec(conn, `UPDATE rate_limit_rule SET capacity = 300`)
	loader.Announce(t.Context(), limit.Revision{Epoch: 1, Number: 2})
	until("the replica shows the announced rule", func() bool { return capacity() == 300 })

	conn.Close(t.Context())
	primary.Kill()
	replica.Promote(t)
	promoted := second.Conn(t)
	exec(promoted, `UPDATE rate_limit_rule SET capacity = 400`)
	loader.Announce(t.Context(), limit.Revision{Epoch: 2, Number: 3})
	until("the promoted primary's rule is in force", func() bool { return capacity() == 400 })
	if at := holder.Load().Revision(); at.Epoch != 2 {
		t.Errorf("revision %s after the fail-over, want epoch 2", at)
	}
}
