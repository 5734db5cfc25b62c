package testenv

import (
	"testing"
	"time"
)

// Eventually tries until it returns nil and fails the test with its last error if that takes longer than within. It is for
// what another process does; inside one process tests wait for a signal.
func Eventually(tb testing.TB, within time.Duration, try func() error) {
	tb.Helper()
	deadline := time.After(within)
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	for {
		err := try()
		if err == nil {
			return
		}
		select {
		case <-again.C:
		case <-deadline:
			tb.Fatalf("after %s still: %v", within, err)
		}
	}
}
