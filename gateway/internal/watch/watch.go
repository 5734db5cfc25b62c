// Package watch tells when a file may have changed.
package watch

import (
	"context"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/fsnotify/fsnotify"
)

// settle is how long a file must have been quiet before it is read: an editor writes in several steps.
const settle = 50 * time.Millisecond

// File calls look once at the beginning and after path may have changed, until ctx ends. It watches the directory, not the file: editors and
// configuration managers put a new file in the old one's place, and Kubernetes swaps a symbolic link beside it. Other files
// there may change as often as they like, such as a log that is written because of what look finds.
func File(ctx context.Context, path string, look func(), logger *slog.Logger) error {
	w, err := fsnotify.NewWatcher()
	if err != nil {
		return fmt.Errorf("watch %s: %w", path, err)
	}
	defer w.Close() //nolint:errcheck // nothing is left to be done about it
	if err := w.Add(filepath.Dir(path)); err != nil {
		return fmt.Errorf("watch %s: %w", path, err)
	}
	last := stateOf(path)
	look() // what changed before the watch began
	quiet := time.NewTimer(time.Hour)
	quiet.Stop()
	defer quiet.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case e, ok := <-w.Events: // of any file there: a link beside path may lead to it
			if !ok {
				return nil
			}
			now := stateOf(path)
			if now.same(last) && filepath.Base(e.Name) != filepath.Base(path) {
				continue
			}
			last = now
			quiet.Reset(settle)
		case err, ok := <-w.Errors:
			if !ok {
				return nil
			}
			logger.WarnContext(ctx, "watch disturbed, changes may have been missed", "file", path, "error", err)
			look()
		case <-quiet.C:
			look()
		}
	}
}

// state is what can be told of a file without reading it; nil where there is none.
type state struct{ info fs.FileInfo }

func stateOf(path string) state {
	info, err := os.Stat(path) // of what a link leads to
	if err != nil {
		return state{}
	}
	return state{info}
}

func (s state) same(other state) bool {
	if s.info == nil || other.info == nil {
		return s.info == nil && other.info == nil
	}
	return os.SameFile(s.info, other.info) && s.info.Size() == other.info.Size() && s.info.ModTime().Equal(other.info.ModTime())
}
