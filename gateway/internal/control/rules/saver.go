package rules

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"partidor.dev/partidor/gateway/internal/snapshot"
)

// refreshSaved is how old the file may become while nothing changes: its age tells how long ago the rules were confirmed.
const refreshSaved = time.Hour

// saver keeps the last good snapshot on disk. Writing takes seconds for half a million rules, so it has a goroutine of its
// own; all else belongs to the goroutine of the loader. A failed write leaves the file before it untouched.
type saver struct {
	path   string // empty: nothing is ever saved
	every  time.Duration
	logger *slog.Logger

	dirtySince time.Time // zero: nothing to save
	begunAt    time.Time // of the last attempt
	writing    bool
	written    chan error
	failed     bool
}

// saved is a snapshot as it was read from disk.
type saved struct {
	snapshot *snapshot.Snapshot
	at       time.Time // when its source last confirmed it
}

func newSaver(path string, every time.Duration, logger *slog.Logger) *saver {
	return &saver{path: path, every: every, logger: logger, written: make(chan error, 1)}
}

// changed notes that there is something to save.
func (s *saver) changed(now time.Time) {
	if s.path != "" && s.dirtySince.IsZero() {
		s.dirtySince = now
	}
}

// confirmed notes that nothing is newer than what is in force.
func (s *saver) confirmed(now time.Time) {
	if now.Sub(s.begunAt) > refreshSaved {
		s.changed(now)
	}
}

// due is when to begin to save; ok is false while there is nothing to save or a file is being written.
func (s *saver) due() (at time.Time, ok bool) {
	if s.dirtySince.IsZero() || s.writing {
		return time.Time{}, false
	}
	if next := s.begunAt.Add(s.every); next.After(s.dirtySince) {
		return next, true
	}
	return s.dirtySince, true
}

// load is what is on disk, nil where there is nothing.
func (s *saver) load(region string) (*saved, error) {
	if s.path == "" {
		return nil, nil
	}
	f, err := os.Open(s.path)
	if os.IsNotExist(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return decode(f, region)
}

// begin writes snap in the background; its end arrives on written and is to be given to finish.
func (s *saver) begin(now time.Time, snap *snapshot.Snapshot, confirmed time.Time) {
	s.begunAt, s.dirtySince, s.writing = now, time.Time{}, true
	go func() {
		s.written <- replace(s.path, func(f *os.File) error { return encode(f, snap, confirmed) })
	}()
}

// finish takes the end of a write in. A disk that is full or read-only is logged when it begins and when it ends, and tried
// again after the usual time.
func (s *saver) finish(ctx context.Context, err error) {
	s.writing = false
	switch {
	case err != nil:
		s.changed(s.begunAt)
		if !s.failed {
			s.logger.ErrorContext(ctx, "snapshot cannot be saved, requests are not affected", "file", s.path, "error", err)
		}
	case s.failed:
		s.logger.InfoContext(ctx, "snapshot is saved again", "file", s.path)
	}
	s.failed = err != nil
}

// save writes what is unsaved and waits for it.
func (s *saver) save(ctx context.Context, snap *snapshot.Snapshot, confirmed time.Time) {
	if s.writing {
		s.finish(ctx, <-s.written)
	}
	if s.dirtySince.IsZero() {
		return
	}
	s.begin(time.Now(), snap, confirmed)
	s.finish(ctx, <-s.written)
}

// replace puts a new file in the place of path in one step: a reader and a crash find the old or the new one, whole.
func replace(path string, write func(*os.File) error) (err error) {
	dir := filepath.Dir(path)
	f, err := os.CreateTemp(dir, "."+filepath.Base(path)+".*") // mode 0600: the hashes of API keys are in it
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = f.Close()
			_ = os.Remove(f.Name())
		}
	}()
	if err = write(f); err != nil {
		return err
	}
	if err = f.Sync(); err != nil {
		return err
	}
	if err = f.Close(); err != nil {
		return err
	}
	if err = os.Rename(f.Name(), path); err != nil {
		return err
	}
	if d, err := os.Open(dir); err == nil {
		_ = d.Sync()
		_ = d.Close()
	}
	return nil
}
