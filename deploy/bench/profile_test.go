package main

import (
	"os"
	"path/filepath"
	"testing"
)

// A run leaves both profiles where it was told to, and none where it was not.
func TestProfilesAreRecorded(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "profiles")
	for _, to := range []string{"", dir} {
		end, err := record(to)
		if err != nil {
			t.Fatal(err)
		}
		if err := end(); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"cpu.pprof", "heap.pprof"} {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Size() == 0 {
			t.Errorf("%s: %v, %v", name, info, err)
		}
	}
}
