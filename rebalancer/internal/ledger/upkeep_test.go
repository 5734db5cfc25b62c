package ledger

import (
	"errors"
	"testing"
	"time"

	"partidor.dev/partidor/shared/limit"
)

func TestExpiredOverrideGivesBackWhatItReplaced(t *testing.T) {
	pg, db := opened(t)
	term := lead(t, pg, "x")
	exec(t, db, insertRule, "a", "r") // capacity 10, for good
	exec(t, db, `UPDATE rate_limit_rule SET capacity = 99, expires_at = now() + interval '1 hour'`)
	exec(t, db, `UPDATE rate_limit_rule SET capacity = 88`) // the override is edited: still temporary
	exec(t, db, `INSERT INTO rate_limit_rule (tenant_id, route_id, capacity, refill_per_second, expires_at) VALUES ('b', 'r', 5, 1, now() + interval '1 hour')`)
	if n, err := pg.EndExpired(t.Context(), term); n != 0 || err != nil {
		t.Errorf("%d ended early, %v", n, err)
	}
	exec(t, db, `UPDATE rate_limit_rule SET expires_at = now() - interval '1 second'`)
	if n, err := pg.EndExpired(t.Context(), term); n != 2 || err != nil {
		t.Fatalf("%d ended, %v; want 2", n, err)
	}
	if got := one[string](t, db, `SELECT string_agg(concat_ws(' ', tenant_id, capacity, expires_at), ',') FROM rate_limit_rule`); got != "a 10" {
		t.Errorf("rules %q, want a's own rule back and b's gone", got)
	}
	if _, err := pg.EndExpired(t.Context(), term-1); !errors.Is(err, ErrFenced) {
		t.Errorf("a stale leader ended rules: %v", err)
	}
}

// An override that lasts longer than history is kept gives back what it replaced all the same.
func TestOverrideOutlastsTheHistory(t *testing.T) {
	pg, db := opened(t)
	term := lead(t, pg, "x")
	exec(t, db, insertRule, "a", "r") // capacity 10, for good
	exec(t, db, `UPDATE rate_limit_rule SET capacity = 99, expires_at = now() + interval '1 hour'`)
	exec(t, db, `UPDATE rate_limit_rule SET capacity = 88`)
	exec(t, db, `UPDATE history SET at = now() - interval '100 days'`)
	if n, err := pg.Age(t.Context(), term, 90*24*time.Hour); err != nil || n == 0 {
		t.Fatalf("%d entries aged, %v", n, err)
	}
	if got := one[int](t, db, `SELECT count(*) FROM history WHERE kind = 'rule'`); got != 1 {
		t.Errorf("%d entries left of the rule, want the one that the override needs", got)
	}
	exec(t, db, `UPDATE rate_limit_rule SET expires_at = now()`)
	if n, err := pg.EndExpired(t.Context(), term); n != 1 || err != nil {
		t.Fatalf("%d ended, %v", n, err)
	}
	if got := one[string](t, db, `SELECT concat_ws(' ', capacity, expires_at) FROM rate_limit_rule`); got != "10" {
		t.Errorf("rule %q, want the one of before", got)
	}
	exec(t, db, `UPDATE history SET at = now() - interval '100 days'`)
	if _, err := pg.Age(t.Context(), term, 90*24*time.Hour); err != nil {
		t.Fatal(err)
	}
	if got := one[int](t, db, `SELECT count(*) FROM history WHERE kind = 'rule'`); got != 0 {
		t.Errorf("%d entries of an override that is over are kept", got)
	}
}

// Gateways end an override by themselves, to the second: what it had replaced is back before that, so that no other rule holds
// and clamps in between. One that nothing had stood before lasts to its end.
func TestReplacedRuleIsBackBeforeItsOverrideEnds(t *testing.T) {
	pg, db := opened(t)
	term := lead(t, pg, "x")
	exec(t, db, insertRule, "a", "r")
	exec(t, db, `UPDATE rate_limit_rule SET capacity = 99, expires_at = now() + interval '4 seconds'`)
	exec(t, db, `INSERT INTO rate_limit_rule (tenant_id, route_id, capacity, refill_per_second, expires_at) VALUES ('b', 'r', 5, 1, now() + interval '4 seconds')`)
	if n, err := pg.EndExpired(t.Context(), term); n != 1 || err != nil {
		t.Fatalf("%d ended, %v; want a's", n, err)
	}
	if got := one[string](t, db, `SELECT string_agg(concat_ws(' ', tenant_id, capacity, expires_at IS NULL), ',' ORDER BY tenant_id) FROM rate_limit_rule`); got != "a 10 t,b 5 f" {
		t.Errorf("rules %q, want a's own rule back and b's still there", got)
	}
}

// An override whose predecessor is refused now, here because of a limit over all routes, ends all the same, and so do others.
func TestOneOverrideThatCannotGiveBackHoldsUpNoOther(t *testing.T) {
	pg, db := opened(t)
	term := lead(t, pg, "x")
	exec(t, db, `INSERT INTO rate_limit_rule (tenant_id, route_id, capacity, refill_per_second, shards) VALUES ('a', 'r', 1000, 100, 8)`)
	exec(t, db, insertRule, "b", "r")
	exec(t, db, `UPDATE rate_limit_rule SET capacity = 99, shards = 1, expires_at = now() - interval '1 second'`)
	exec(t, db, insertRule, "a", "@tenant")
	if n, err := pg.EndExpired(t.Context(), term); n != 2 || err != nil {
		t.Fatalf("%d ended, %v; want both", n, err)
	}
	if got := one[string](t, db, `SELECT string_agg(concat_ws(' ', tenant_id, route_id, capacity), ',' ORDER BY tenant_id) FROM rate_limit_rule`); got != "a @tenant 10,b r 10" {
		t.Errorf("rules %q, want b's own rule back and a's gone", got)
	}
}

func TestDemandIsRecordedRolledUpAndDropped(t *testing.T) {
	pg, db := opened(t)
	term := lead(t, pg, "x")
	hour := time.Now().UTC().Truncate(time.Hour).Add(-2 * time.Hour)
	var points []DemandPoint
	for i := range 60 {
		points = append(points, DemandPoint{At: hour.Add(time.Duration(i) * time.Minute), Tenant: "a", Route: "r", Region: "eu", Offered: float32(i), Share: 700_000})
	}
	if err := pg.RecordDemand(t.Context(), term, points); err != nil {
		t.Fatal(err)
	}
	if err := pg.RecordDemand(t.Context(), term, points[:3]); err != nil { // a repetition does no harm
		t.Fatal(err)
	}
	exec(t, db, `INSERT INTO demand SELECT 60, now() - interval '3 days', 'old', 'r', 'eu', 1, 0, 0`)
	for range 2 {
		if err := pg.RollUpDemand(t.Context(), term, 90*24*time.Hour); err != nil {
			t.Fatal(err)
		}
	}
	minutes, err := pg.Demand(t.Context(), limit.Key{Tenant: "a", Route: "r"}, hour, DemandMinute)
	if err != nil || len(minutes) != 60 || minutes[59].Offered != 59 {
		t.Errorf("%d minutes, %v", len(minutes), err)
	}
	hours, err := pg.Demand(t.Context(), limit.Key{Tenant: "a", Route: "r"}, time.Time{}, DemandHour)
	if err != nil || len(hours) != 1 || hours[0].Offered != 29.5 || hours[0].Share != 700_000 {
		t.Errorf("hours %+v, %v", hours, err)
	}
	if got := one[int](t, db, `SELECT count(*) FROM demand WHERE step_seconds = 60 AND tenant_id = 'old'`); got != 0 {
		t.Error("a minute of three days ago is kept")
	}
	exec(t, db, `UPDATE history SET at = now() - interval '100 days'`)
	exec(t, db, insertRule, "z", "r")
	if n, err := pg.Age(t.Context(), term, 90*24*time.Hour); err != nil || n == 0 {
		t.Errorf("%d entries aged, %v", n, err)
	}
	if got := one[int](t, db, `SELECT count(*) FROM history`); got != 1 {
		t.Errorf("%d entries left, want the new one", got)
	}
}
