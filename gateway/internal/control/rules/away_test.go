package rules_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"partidor.dev/partidor/gateway/internal/control/rules"
	"partidor.dev/partidor/gateway/internal/snapshot"
	"partidor.dev/partidor/shared/limit"
)

// PostgreSQL away at start: the saved snapshot serves, flagged stale, until the database is back; without one nothing is
// loaded (request-path 85).
func TestPostgresAwayAtStart(t *testing.T) {
	file := filepath.Join(t.TempDir(), "snapshot")
	l := newLedger(t, func(o *rules.Options) { o.File = file })
	l.exec(insertShopA)
	l.exec(`INSERT INTO rate_limit_rule (tenant_id, route_id, capacity, refill_per_second) VALUES ('shop-b', 'create-order', 5, 5)`)
	l.read()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_ = l.loader.Run(ctx) // saves at its end
	if _, err := os.Stat(file); err != nil {
		t.Fatal(err)
	}

	away := pool(t, "postgres://app@127.0.0.1:1/nowhere?connect_timeout=1")
	holder := snapshot.NewHolder("eu")
	stale := newLoader(t, rules.Options{Holder: holder, Source: rules.NewLedger(away, "eu", 0), File: file})
	if err := stale.Start(t.Context()); err != nil {
		t.Fatalf("start with a saved snapshot: %v", err)
	}
	if m := holder.Load().Lookup("shop-a", "create-order"); m.Rule.Capacity != 200 || !holder.Load().Stale() {
		t.Errorf("capacity %d stale %v, want the saved 200, stale", m.Rule.Capacity, holder.Load().Stale())
	}
	s := stale.Status()
	if !s.Stale || !s.Loaded || s.Err == nil || time.Since(s.ConfirmedAt) <= 0 {
		t.Errorf("status %+v", s)
	}

	empty := newLoader(t, rules.Options{Holder: snapshot.NewHolder("eu"), Source: rules.NewLedger(away, "eu", 0), File: file + ".none"})
	if err := empty.Start(t.Context()); err == nil || empty.Status().Loaded {
		t.Errorf("start from nothing: %v, loaded %v", err, empty.Status().Loaded)
	}

	// Back again: nothing of the saved state is believed, also what was deleted meanwhile is gone.
	l.exec(`DELETE FROM rate_limit_rule WHERE tenant_id = 'shop-b'`)
	back := newLoader(t, rules.Options{Holder: holder, Source: &switching{away: rules.NewLedger(away, "eu", 0), there: rules.NewLedger(l.pool, "eu", 0)}, File: file})
	if err := back.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := back.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if m := holder.Load().Lookup("shop-b", "create-order"); m.Rule.Capacity != 20 || holder.Load().Stale() || back.Status().Stale {
		t.Errorf("after the return: capacity %d, stale %v", m.Rule.Capacity, holder.Load().Stale())
	}
}

// switching is away once, then there.
type switching struct{ away, there rules.Source }

func (s *switching) Name() string { return s.there.Name() }

func (s *switching) Read(ctx context.Context, since limit.Revision) (*rules.Increment, error) {
	if s.away != nil {
		src := s.away
		s.away = nil
		return src.Read(ctx, since)
	}
	return s.there.Read(ctx, since)
}

// A row that became bad while the gateway was down keeps its last saved state.
func TestBadRowAtStartKeepsTheSavedRule(t *testing.T) {
	file := filepath.Join(t.TempDir(), "snapshot")
	l := newLedger(t, func(o *rules.Options) { o.File = file })
	l.exec(insertShopA)
	l.exec(`ALTER TABLE rate_limit_rule DROP CONSTRAINT rule_capacity_positive`)
	l.read()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_ = l.loader.Run(ctx)
	l.exec(`UPDATE rate_limit_rule SET capacity = -1`)

	holder := snapshot.NewHolder("eu")
	again := newLoader(t, rules.Options{Holder: holder, Source: rules.NewLedger(l.pool, "eu", 0), File: file})
	if err := again.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if m := holder.Load().Lookup("shop-a", "create-order"); m.Rule.Capacity != 200 || holder.Load().Stale() {
		t.Errorf("capacity %d stale %v, want the saved 200, not stale", m.Rule.Capacity, holder.Load().Stale())
	}
}

// All connections of the database are taken: the last rules stay in force, and the words are clear.
func TestPostgresConnectionsExhausted(t *testing.T) {
	l := newLedger(t)
	l.exec(insertShopA)
	l.read()
	url := l.login("LOGIN IN ROLE partidor_gateway CONNECTION LIMIT 0")
	src := &switching{away: rules.NewLedger(l.pool, "eu", 0), there: rules.NewLedger(pool(t, url), "eu", 0)}
	holder := snapshot.NewHolder("eu")
	loader := newLoader(t, rules.Options{Holder: holder, Source: src})
	for range 2 {
		if err := loader.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	s := loader.Status()
	if s.Err == nil || !strings.Contains(s.Err.Error(), "too many connections") {
		t.Errorf("error %v, want one that speaks of connections", s.Err)
	}
	if m := holder.Load().Lookup("shop-a", "create-order"); m.Rule.Capacity != 200 {
		t.Errorf("capacity %d, want the last good 200", m.Rule.Capacity)
	}
}

// The role that the migrations make for gateways may read everything they need, and change nothing.
func TestGatewayRoleIsEnough(t *testing.T) {
	l := newLedger(t)
	l.exec(insertShopA)
	url := l.login("LOGIN IN ROLE partidor_gateway")
	holder, reader := snapshot.NewHolder("eu"), pool(t, url)
	loader := newLoader(t, rules.Options{Holder: holder, Source: rules.NewLedger(reader, "eu", 0)})
	if err := loader.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if m := holder.Load().Lookup("shop-a", "create-order"); m.Rule.Capacity != 200 {
		t.Errorf("capacity %d, want 200", m.Rule.Capacity)
	}
	if _, err := reader.Exec(t.Context(), `UPDATE rate_limit_rule SET capacity = 1`); err == nil {
		t.Error("the gateways' role may change rules")
	}
}

// Polls that bring nothing write nothing; only once an hour the file says anew that it was confirmed.
func TestSnapshotIsSavedWhenSomethingChanges(t *testing.T) {
	file := filepath.Join(t.TempDir(), "snapshot")
	l := newLedger(t, func(o *rules.Options) {
		o.File, o.Poll, o.SaveEvery = file, 20*time.Millisecond, time.Millisecond
	})
	l.exec(insertShopA)
	l.read()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); _ = l.loader.Run(ctx) }()
	defer func() {
		cancel()
		<-done
	}()
	written := func() (at time.Time) {
		if info, err := os.Stat(file); err == nil {
			at = info.ModTime()
		}
		return at
	}
	eventually(t, 5*time.Second, "the first save", func() bool { return !written().IsZero() })
	first, polled := written(), l.loader.Status().ConfirmedAt
	eventually(t, 5*time.Second, "ten polls", func() bool { return l.loader.Status().ConfirmedAt.Sub(polled) > 200*time.Millisecond })
	if !written().Equal(first) {
		t.Error("written again although nothing has changed")
	}
	l.exec(`UPDATE rate_limit_rule SET capacity = 201`)
	eventually(t, 5*time.Second, "the change is saved", func() bool { return written().After(first) })
}
