package ledger

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// What is answered is the caller's to fill, also before anything has been noted.
func TestMemoryRegionLeasesAreTheCallers(t *testing.T) {
	file := filepath.Join(t.TempDir(), "rules.yaml")
	if err := os.WriteFile(file, []byte("revision: 1\nregions: {eu: 100%}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	m, err := NewMemory(file, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	leases, err := m.RegionLeases(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	leases["eu"] = RegionLease{Fences: true}
	if again, _ := m.RegionLeases(t.Context()); len(again) != 0 {
		t.Errorf("the ledger's own leases are handed out: %v", again)
	}
}
