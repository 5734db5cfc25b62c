package certs

import (
	"fmt"
	"log/slog"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// lookEvery bounds how often the files are looked at.
const lookEvery = time.Second

// followed is what some files mean together, read again when one of them changes. It is asked at handshakes, so it needs no
// watcher and no goroutine of its own.
type followed[T any] struct {
	what   string // in the log
	files  []string
	read   func() (*T, error)
	logger *slog.Logger

	current atomic.Pointer[T]
	looked  atomic.Int64 // Unix nanoseconds
	mu      sync.Mutex
	stamps  []stamp
}

// stamp tells one state of a file from another.
type stamp struct {
	modified time.Time
	size     int64
}

func follow[T any](what string, files []string, read func() (*T, error), logger *slog.Logger) (*followed[T], error) {
	f := &followed[T]{what: what, files: files, read: read, logger: logger}
	if err := f.load(); err != nil {
		return nil, err
	}
	f.looked.Store(time.Now().UnixNano())
	return f, nil
}

// get is what the files meant when they were last read well.
func (f *followed[T]) get() *T {
	now, last := time.Now().UnixNano(), f.looked.Load()
	if now-last >= int64(lookEvery) && f.looked.CompareAndSwap(last, now) {
		f.refresh()
	}
	return f.current.Load()
}

func (f *followed[T]) refresh() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if s, err := f.look(); err == nil && slices.Equal(s, f.stamps) {
		return
	}
	if err := f.load(); err != nil {
		// The files may be half written; the next look tells.
		f.logger.Warn(f.what+" not renewed, the last good one stays", "error", err)
		return
	}
	f.logger.Info(f.what+" renewed", "file", f.files[0])
}

func (f *followed[T]) look() ([]stamp, error) {
	stamps := make([]stamp, len(f.files))
	for i, name := range f.files {
		info, err := os.Stat(name)
		if err != nil {
			return nil, fmt.Errorf("look at %s: %w", f.what, err)
		}
		stamps[i] = stamp{info.ModTime(), info.Size()}
	}
	return stamps, nil
}

// load looks before it reads: what is written in between is found by the next look.
func (f *followed[T]) load() error {
	stamps, err := f.look()
	if err != nil {
		return err
	}
	next, err := f.read()
	if err != nil {
		return fmt.Errorf("read %s: %w", f.what, err)
	}
	f.current.Store(next)
	f.stamps = stamps
	return nil
}
