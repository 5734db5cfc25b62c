// Package watch tells when a file may have changed.
package watch

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"time"

	"github.com/fsnotify/fsnotify"
)

// settle is how long a file must have been quiet before it is read: an editor writes in several steps.
const settle = 50 * time.Millisecond

// File calls look once at the beginning and after path may have changed, until ctx ends. It watches the directory, not the file: editors and
// configuration managers put a new file in the old one's place, and Kubernetes swaps a symbolic link beside it.
func File(ctx context.Context, path string, look func(), logger *slog.Logger) error {
	w, err := fsnotify.NewWatcher()
	if err != nil {
		return fmt.Errorf("watch %s: %w", path, err)
	}
	defer w.Close() //nolint:errcheck // nothing is left to be done about it
	if err := w.Add(filepath.Dir(path)); err != nil {
		return fmt.Errorf("watch %s: %w", path, err)
	}
	look() // what changed before the watch began
	quiet := time.NewTimer(time.Hour)
	quiet.Stop()
	defer quiet.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case _, ok := <-w.Events: // of any file there: which name stands for path is not worth guessing
			if !ok {
				return nil
			}
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
