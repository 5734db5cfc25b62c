package rules_test

import (
	"bytes"
	"crypto/sha256"
	"log/slog"
	"strings"
	"testing"
	"time"

	"partidor.dev/partidor/gateway/internal/control/rules"
	"partidor.dev/partidor/shared/limit"
)

// A row that the ledger let through (its CHECKs dropped, or made by a newer ledger) never replaces a good rule: last good
// kept, counted, logged once.
func TestBadRowNeverReplacesAGoodRule(t *testing.T) {
	var log bytes.Buffer
	l := newLedger(t, func(o *rules.Options) { o.Logger = slog.New(slog.NewJSONHandler(&log, nil)) })
	l.exec(insertShopA)
	l.exec(`ALTER TABLE rate_limit_rule DROP CONSTRAINT rule_capacity_positive, DROP CONSTRAINT rule_algorithm, DROP CONSTRAINT rule_window`)
	l.read()
	for _, bad := range []string{`capacity = -1`, `capacity = 200, algorithm = 'quantum_bucket'`} {
		l.exec(`UPDATE rate_limit_rule SET ` + bad)
		l.read()
		l.read()
		if m := l.holder.Load().Lookup("shop-a", "create-order"); m.Rule.Capacity != 200 || m.Rule.Algorithm != limit.TokenBucket {
			t.Errorf("after %s: %+v, want the last good rule", bad, m.Rule)
		}
	}
	// After a fail-over everything is read again, and the row is still bad.
	l.exec(`UPDATE ledger_revision SET epoch = epoch + 1`)
	l.read()
	if m := l.holder.Load().Lookup("shop-a", "create-order"); m.Rule.Capacity != 200 {
		t.Errorf("after a whole load: %+v, want the last good rule", m.Rule)
	}
	if n := l.loader.Status().Faults; n != 3 {
		t.Errorf("%d faults counted, want 3", n)
	}
	if n := strings.Count(log.String(), "row refused"); n != 2 {
		t.Errorf("%d lines of log, want one per fault:\n%s", n, log.String())
	}
	l.exec(`UPDATE rate_limit_rule SET capacity = 5, algorithm = 'token_bucket'`)
	l.read()
	if m := l.holder.Load().Lookup("shop-a", "create-order"); m.Rule.Capacity != 5 {
		t.Errorf("the corrected rule is not in force: %+v", m.Rule)
	}
}

// An end that no gateway can read is the fault of its row, not of the ledger: all else goes on.
func TestEndlessEndIsTheFaultOfItsRow(t *testing.T) {
	l := newLedger(t)
	l.exec(insertShopA)
	l.exec(`INSERT INTO tenant (id) VALUES ('shop-a'); INSERT INTO api_key (hash, tenant_id) VALUES (sha256('k'), 'shop-a')`)
	l.read()
	l.exec(`ALTER TABLE rate_limit_rule DROP CONSTRAINT rule_expires_at; ALTER TABLE api_key DROP CONSTRAINT api_key_expires_at`)
	for _, end := range []string{"infinity", "-infinity", "12026-01-01"} {
		l.exec(`UPDATE rate_limit_rule SET capacity = 7, expires_at = '` + end + `' WHERE tenant_id = 'shop-a'`)
		l.exec(`UPDATE api_key SET expires_at = '` + end + `'`)
		l.exec(`INSERT INTO rate_limit_rule (tenant_id, route_id, capacity, refill_per_second) VALUES ('` + end + `', 'r', 5, 5)`)
		l.read()
		s := l.holder.Load()
		if m := s.Lookup("shop-a", "create-order"); m.Rule.Capacity != 200 {
			t.Errorf("%s: capacity %d, want the last good rule's 200", end, m.Rule.Capacity)
		}
		if id, ok := s.Tenant(sha256.Sum256([]byte("k")), time.Now()); !ok || id != "shop-a" {
			t.Errorf("%s: the key stands for %q, %v", end, id, ok)
		}
		if m := s.Lookup(end, "r"); m.Rule.Capacity != 5 {
			t.Errorf("%s: capacity %d of a good rule that came with the bad one, want 5", end, m.Rule.Capacity)
		}
	}
}

// The ledger's own region table can lose this gateway's region: the last good regions stay.
func TestRegionsWithoutOursKeepTheLastGoodOnes(t *testing.T) {
	l := newLedger(t)
	l.exec(`INSERT INTO region (name, base_share) VALUES ('eu', 700000), ('us', 300000)`)
	l.read()
	l.exec(`DELETE FROM region WHERE name = 'eu'; UPDATE region SET base_share = 1000000`)
	l.read()
	if got := l.holder.Load().Base(); got != 700_000 {
		t.Errorf("base %d, want the last good 700000", got)
	}
	if l.loader.Status().Faults == 0 {
		t.Error("the fault is not counted")
	}
}

// Floors that do not fit into one limit would admit more than that where rights are lost: a base share is the most a floor is.
func TestFloorsFitIntoTheLimit(t *testing.T) {
	l := newLedger(t)
	l.exec(`INSERT INTO region (name, base_share, floor_share) VALUES ('eu', 700000, 900000), ('us', 300000, 200000)`)
	l.exec(`INSERT INTO parameter (name, value) VALUES ('floor', 'null')`)
	l.read()
	sum := limit.Share(0)
	for _, r := range l.holder.Load().Regions() {
		if r.Floor > r.Base {
			t.Errorf("%s: floor %d above base %d", r.Name, r.Floor, r.Base)
		}
		sum += r.Floor
	}
	if sum > limit.Whole {
		t.Errorf("floors add up to %d", sum)
	}
	l.exec(`UPDATE region SET floor_share = NULL`)
	l.read()
	if got := l.holder.Load().Floor(); got != 35_000 || l.loader.Status().Faults == 0 {
		t.Errorf("floor %d with a parameter of null, want the configured 5 %% of the base and a fault", got)
	}
}

func TestGatewayOfAnUnknownRegionIsNotReady(t *testing.T) {
	l := newLedger(t)
	l.exec(`INSERT INTO region (name, base_share) VALUES ('us', 1000000)`)
	err := l.loader.Start(t.Context())
	if err == nil || !strings.Contains(err.Error(), `"eu"`) {
		t.Fatalf("start: %v, want an error that names eu", err)
	}
	if l.loader.Status().Loaded {
		t.Error("loaded without a share")
	}
}

// The epoch rises with PostgreSQL's timeline. Rows that were not rewritten count as of the new epoch, and what the new
// primary has forgotten is forgotten here too.
func TestEpochRiseLoadsEverythingAgain(t *testing.T) {
	l := newLedger(t)
	l.exec(insertShopA)
	l.exec(`INSERT INTO rate_limit_rule (tenant_id, route_id, capacity, refill_per_second) VALUES ('shop-b', 'create-order', 5, 5)`)
	l.read()
	l.exec(`ALTER TABLE rate_limit_rule DISABLE TRIGGER USER; DELETE FROM rate_limit_rule WHERE tenant_id = 'shop-b'`) // lost by the fail-over
	l.exec(`UPDATE ledger_revision SET epoch = 2, number = 1`)
	l.read()
	s := l.holder.Load()
	if m := s.Lookup("shop-a", "create-order"); m.Rule.Capacity != 200 || m.Revision != (limit.Revision{Epoch: 2}) {
		t.Errorf("shop-a: capacity %d at %s, want 200 at 2.0", m.Rule.Capacity, m.Revision)
	}
	if m := s.Lookup("shop-b", "create-order"); m.Rule.Capacity != 20 {
		t.Errorf("shop-b: capacity %d, want the default: its rule is lost", m.Rule.Capacity)
	}
}

// A replica that lags says nothing, rather than taking rules back.
func TestLaggingReplicaTakesNothingBack(t *testing.T) {
	l := newLedger(t)
	l.exec(insertShopA)
	l.read()
	confirmed := l.loader.Status().ConfirmedAt
	l.exec(`UPDATE ledger_revision SET number = 0; ALTER TABLE rate_limit_rule DISABLE TRIGGER USER; DELETE FROM rate_limit_rule`)
	l.read()
	if m := l.holder.Load().Lookup("shop-a", "create-order"); m.Rule.Capacity != 200 {
		t.Errorf("capacity %d: taken back by a replica that lags", m.Rule.Capacity)
	}
	if got := l.loader.Status().ConfirmedAt; !got.Equal(confirmed) {
		t.Errorf("confirmed at %s by a replica that lags, before %s", got.Format(time.RFC3339Nano), confirmed.Format(time.RFC3339Nano))
	}
}
