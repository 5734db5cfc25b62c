//go:build browser

package app

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"partidor.dev/partidor/shared/limit"
)

// TestConsoleInChromium is run by `make console-test`, which installs what it needs: Node, Chromium and playwright-core. SHOTS
// keeps the screenshots.
func TestConsoleInChromium(t *testing.T) {
	w := newWorld(t)
	w.past(t)
	w.shares = map[string]limit.Share{"eu": 300_000, "us": 700_000}
	url, _ := w.start(t, "one")
	w.traffic(t, map[string]float64{"eu": 20, "us": 110})
	eventually(t, "a split", func() bool {
		var n int
		err := w.db.QueryRow(t.Context(), `SELECT count(*) FROM split WHERE term > 0`).Scan(&n)
		return err == nil && n > 0
	})
	shots := os.Getenv("SHOTS")
	if shots == "" {
		shots = t.TempDir()
	}
	cmd := exec.CommandContext(t.Context(), "node", "console.mjs", url, shots)
	cmd.Dir = filepath.Join("..", "internal", "console", "browser")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v (is everything installed? make console-test)\n%s", err, out)
	}
	var pin int
	var reason string
	err := w.db.QueryRow(t.Context(), `SELECT s.pinned_share, h.reason FROM split s, history h WHERE s.region = 'eu' AND h.kind = 'pin'`).Scan(&pin, &reason)
	if err != nil || pin != 425_000 || reason != "pinned by the browser" {
		t.Errorf("the ledger has pin %d for %q, %v", pin, reason, err)
	}
	var domain string
	if err := w.db.QueryRow(t.Context(), `SELECT failure_domain FROM region WHERE name = 'us'`).Scan(&domain); err != nil || domain != "rack-2" {
		t.Errorf("the ledger has us in domain %q, %v", domain, err)
	}
}

// past is three quarters of an hour of recorded demand that moved from eu to us, and the decisions that followed it.
func (w *world) past(t *testing.T) {
	w.exec(t, `INSERT INTO demand (step_seconds, at, tenant_id, route_id, region, offered, refused, share)
		SELECT 60, date_trunc('minute', now()) - m * interval '1 minute', 'shop-a', 'create-order', region,
			CASE region WHEN 'eu' THEN 65 - 45 * moved ELSE 25 + 60 * moved END + 4 * sin(m), CASE WHEN region = 'us' AND m BETWEEN 20 AND 24 THEN m - 19 ELSE 0 END,
			CASE region WHEN 'eu' THEN 700000 - 400000 * follow ELSE 300000 + 400000 * follow END
		FROM generate_series(1, 45) m, (VALUES ('eu'), ('us')) r (region),
			LATERAL (SELECT least(1, greatest(0, (28 - m) / 10.0)) AS moved, CASE WHEN m > 24 THEN 0 WHEN m > 20 THEN 0.4 WHEN m > 16 THEN 0.8 ELSE 1 END AS follow) x`)
	w.exec(t, `INSERT INTO history (kind, at, operation, tenant_id, route_id, actor, reason, before, after, term, cycle)
		SELECT 'split', now() - m * interval '1 minute', 'plan', 'shop-a', 'create-order', 'rebalancer', 'follow: us offers ' || us || '/s of 100/s, its share follows',
			jsonb_build_object('eu', eu, 'us', 1000000 - eu), jsonb_build_object('eu', then_eu, 'us', 1000000 - then_eu), 1, 1
		FROM (VALUES (24, 49, 700000, 540000), (20, 73, 540000, 380000), (16, 84, 380000, 300000)) d (m, us, eu, then_eu)`)
}
