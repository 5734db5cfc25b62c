package rules

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"partidor.dev/partidor/gateway/internal/snapshot"
)

// saver keeps the last good snapshot on disk. A failed write leaves the file before it untouched.
type saver struct {
	path   string // empty: nothing is ever saved
	every  time.Duration
	logger *slog.Logger

	dirtySince time.Time // zero: nothing to save
	savedAt    time.Time
	failed     bool
}

// saved is a snapshot as it was read from disk.
type saved struct {
	snapshot *snapshot.Snapshot
	at       time.Time // when its source last confirmed it
}

func newSaver(path string, every time.Duration, logger *slog.Logger) *saver {
	return &saver{path: path, every: every, logger: logger}
}

// changed notes that there is something to save.
func (s *saver) changed(now time.Time) {
	if s.path != "" && s.dirtySince.IsZero() {
		s.dirtySince = now
	}
}

// due is when to save next; ok is false while there is nothing to save.
func (s *saver) due() (at time.Time, ok bool) {
	if s.dirtySince.IsZero() {
		return time.Time{}, false
	}
	if next := s.savedAt.Add(s.every); next.After(s.dirtySince) {
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

// save writes snap if anything has changed. A disk that is full or read-only is logged when it begins and when it ends.
func (s *saver) save(ctx context.Context, snap *snapshot.Snapshot, confirmed time.Time) {
	if s.dirtySince.IsZero() {
		return
	}
	s.savedAt = time.Now() // also of a failed attempt: the next one waits as long
	err := replace(s.path, func(f *os.File) error { return encode(f, snap, confirmed) })
	if err != nil {
		if !s.failed {
			s.logger.ErrorContext(ctx, "snapshot cannot be saved, requests are not affected", "file", s.path, "error", err)
		}
		s.failed = true
		return
	}
	if s.failed {
		s.logger.InfoContext(ctx, "snapshot is saved again", "file", s.path)
	}
	s.failed, s.dirtySince = false, time.Time{}
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
