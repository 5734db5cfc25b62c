package main

import (
	"os"
	"path/filepath"
	"testing"

	"partidor.dev/partidor/rebalancer/internal/sim"
)

func TestRecordedDemandBecomesAScenario(t *testing.T) {
	d := newDesk(t)
	d.want(t, exitFailed, "nothing is recorded", "demand", "shop-a", "r", "--scenario")
	d.want(t, exitOK, "", "rules", "set", "shop-a", "r", "--capacity", "200", "--refill", "100", "--yes")
	_, err := d.db.Exec(t.Context(), `INSERT INTO demand (step_seconds, at, tenant_id, route_id, region, offered, refused, share)
		SELECT 60, date_trunc('minute', now()) - m * interval '1 minute', 'shop-a', 'r', region, 10 + m, 1, 500000
		  FROM generate_series(1, 20) m, unnest(ARRAY['eu', 'us']) region`)
	if err != nil {
		t.Fatal(err)
	}
	d.want(t, exitOK, "50%", "demand", "shop-a", "r", "--hours", "1")
	file := filepath.Join(t.TempDir(), "s.yaml")
	if err := os.WriteFile(file, []byte(d.want(t, exitOK, "duration: 20m0s", "demand", "shop-a", "r", "--hours", "1", "--scenario")), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := sim.LoadScenario(file); err != nil {
		t.Error(err)
	}
	d.want(t, exitOK, "history", "simulate", "--file", file, "--list")
}
