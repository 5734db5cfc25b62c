//go:build browser

package app

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// TestConsoleInChromium is run by `go test -tags browser ./app`: it needs Node, Chromium and playwright-core
// (`npm install` in internal/console/browser). SHOTS keeps the screenshots.
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
		t.Fatalf("%v (is everything installed? npm install in %s)\n%s", err, cmd.Dir, out)
	}
	var pin int
	var reason string
	err := w.db.QueryRow(t.Context(), `SELECT s.pinned_share, h.reason FROM split s, history h WHERE s.region = 'eu' AND h.kind = 'pin'`).Scan(&pin, &reason)
	if err != nil || pin != 425_000 || reason != "pinned by the browser" {
		t.Errorf("the ledger has pin %d for %q, %v", pin, reason, err)
	}
}
