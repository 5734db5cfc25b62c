package watch_test

import (
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"partidor.dev/partidor/gateway/internal/watch"
)

// follow watches path and reports each look.
func follow(t *testing.T, path string) <-chan struct{} {
	t.Helper()
	looks := make(chan struct{}, 1000)
	ended := make(chan error, 1)
	go func() {
		ended <- watch.File(t.Context(), path, func() { looks <- struct{}{} }, slog.New(slog.DiscardHandler))
	}()
	t.Cleanup(func() {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	look(t, looks, "the first")
	return looks
}

func look(t *testing.T, looks <-chan struct{}, which string) {
	t.Helper()
	select {
	case <-looks:
	case <-time.After(5 * time.Second):
		t.Fatalf("no look: %s", which)
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// A neighbour that never rests, such as a log, neither causes looks nor keeps a change from being seen.
func TestBusyNeighbour(t *testing.T) {
	dir := t.TempDir()
	path, log := filepath.Join(dir, "gateway.yaml"), filepath.Join(dir, "gateway.log")
	write(t, path, "a")
	looks := follow(t, path)
	write(t, log, "a line")
	select {
	case <-looks:
		t.Error("a look for a change of another file")
	case <-time.After(300 * time.Millisecond):
	}
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	write(t, path, "bb")
	late := time.After(5 * time.Second)
	for i := 0; ; i++ {
		select {
		case <-looks:
			return
		case <-late:
			t.Fatal("a change was not seen beside a busy neighbour")
		case <-tick.C:
			write(t, log, strconv.Itoa(i))
		}
	}
}

// Replaced, removed, put back, and swapped behind a link as Kubernetes does: each is a change.
func TestChanges(t *testing.T) {
	dir := t.TempDir()
	for _, version := range []string{"v1", "v2"} {
		if err := os.Mkdir(filepath.Join(dir, version), 0o700); err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(dir, version, "gateway.yaml"), version)
	}
	path := filepath.Join(dir, "gateway.yaml")
	link := func(target, name string) {
		t.Helper()
		if err := os.Symlink(target, name); err != nil {
			t.Fatal(err)
		}
	}
	rename := func(from, to string) {
		t.Helper()
		if err := os.Rename(from, to); err != nil {
			t.Fatal(err)
		}
	}
	link("v1", filepath.Join(dir, "..data"))
	link(filepath.Join("..data", "gateway.yaml"), path)
	looks := follow(t, path)
	link("v2", filepath.Join(dir, "..next"))
	rename(filepath.Join(dir, "..next"), filepath.Join(dir, "..data"))
	look(t, looks, "a link was swapped")
	rename(path, filepath.Join(dir, "away"))
	look(t, looks, "the file has gone")
	write(t, filepath.Join(dir, "new"), "v3")
	rename(filepath.Join(dir, "new"), path)
	look(t, looks, "another file took its place")
}
