package rules_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"partidor.dev/partidor/gateway/internal/control/rules"
	"partidor.dev/partidor/gateway/internal/snapshot"
	"partidor.dev/partidor/shared/limit"
)

// late is what of eu's base share an hour's window does not count yet.
func late(h *snapshot.Holder) limit.Share {
	m := h.Load().Lookup("shop-a", "orders")
	return h.Load().Late(&m, time.Now())
}

const hourly = `INSERT INTO rate_limit_rule (tenant_id, route_id, capacity, refill_per_second, algorithm, window_seconds)
	VALUES ('shop-a', 'orders', 100, NULL, 'fixed_window', 3600)`

// swap publishes 70/30 instead of 30/70 as the rebalancer does, step by step.
func (l *ledger) swap() {
	l.Helper()
	l.exec(`UPDATE region SET base_share = 1000000 - base_share, published_share = CASE name WHEN 'us' THEN 300000 ELSE published_share END`)
	l.read()
	l.exec(`UPDATE region SET published_share = 700000 WHERE name = 'eu'`)
	l.read()
}

// The ledger keeps what every region had before: a gateway that starts only now knows how much of its base share is late.
func TestEarlierSharesComeFromTheLedger(t *testing.T) {
	l := newLedger(t)
	l.exec(hourly)
	l.exec(`INSERT INTO region (name, base_share) VALUES ('eu', 300000), ('us', 700000)`)
	l.read()
	if got := late(l.holder); got != 0 {
		t.Errorf("the first split: %d late", got)
	}
	l.swap()
	if got, base := late(l.holder), l.holder.Load().Base(); got != 400_000 || base != 700_000 {
		t.Errorf("base %d, of which %d late", base, got)
	}
	young := snapshot.NewHolder("eu")
	if err := newLoader(t, rules.Options{Holder: young, Source: rules.NewLedger(l.pool, "eu", 50_000)}).Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := late(young); got != 400_000 {
		t.Errorf("a gateway that has seen no change: %d late", got)
	}
	// An hour passes.
	l.exec(`ALTER TABLE region DISABLE TRIGGER region_b_earlier`)
	l.exec(`UPDATE region SET earlier_shares = (SELECT jsonb_agg(jsonb_set(e, '{until}', to_jsonb((e ->> 'until')::numeric - 3600)))
		FROM jsonb_array_elements(earlier_shares) e)`)
	l.read()
	if got := late(l.holder); got != 0 {
		t.Errorf("an hour later: %d late", got)
	}
}

// Of a ledger that keeps no history yet, as during an upgrade, a gateway goes by what it sees change itself.
func TestEarlierSharesOfAnOlderLedger(t *testing.T) {
	l := newLedger(t)
	l.exec(`DROP TRIGGER region_b_earlier ON region`)
	l.exec(`ALTER TABLE region DROP COLUMN earlier_shares`)
	l.exec(hourly)
	l.exec(`INSERT INTO region (name, base_share) VALUES ('eu', 300000), ('us', 700000)`)
	l.read()
	l.swap()
	if got := late(l.holder); got != 400_000 {
		t.Errorf("%d late", got)
	}
	l.read() // nothing new
	if got := late(l.holder); got != 400_000 {
		t.Errorf("read again: %d late", got)
	}
}

// A file says only what is; what was is kept beside the snapshot, also over a restart.
func TestEarlierSharesOfAFile(t *testing.T) {
	dir := t.TempDir()
	path, saved := filepath.Join(dir, "rules.yaml"), filepath.Join(dir, "snapshot")
	say := func(revision int, eu, us string) {
		text := fmt.Sprintf("revision: %d\nregions: {eu: %s, us: %s}\nrules:\n- {tenant: shop-a, route: orders, capacity: 100, algorithm: fixed_window, window_seconds: 3600}\n",
			revision, eu, us)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	start := func() (*rules.Loader, *snapshot.Holder) {
		h := snapshot.NewHolder("eu")
		l := newLoader(t, rules.Options{Holder: h, Source: rules.NewFile(path, "eu", 50_000), File: saved, Poll: time.Hour})
		if err := l.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		return l, h
	}
	say(1, "30%", "70%")
	l, h := start()
	say(2, "70%", "30%")
	if err := l.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := late(h); got != 400_000 {
		t.Errorf("%d late", got)
	}
	stop, cancel := context.WithCancel(t.Context())
	cancel()
	if err := l.Run(stop); err != nil { // saves
		t.Fatal(err)
	}
	if _, h = start(); late(h) != 400_000 {
		t.Errorf("after a restart %d late", late(h))
	}
}
