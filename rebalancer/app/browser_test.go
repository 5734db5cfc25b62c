//go:build browser

package app

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// TestConsoleInChromium is run by `make console-test`, which installs what it needs: Node, Chromium and playwright-core. SHOTS
// keeps the screenshots.
func TestConsoleInChromium(t *testing.T) {
	w := newWorld(t)
	url, _ := w.start(t, "one")
	w.traffic(t, map[string]float64{"eu": 20, "us": 110})
	eventually(t, "a split", func() bool {
		var n int
		err := w.db.QueryRow(t.Context(), `SELECT count(*) FROM split`).Scan(&n)
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
