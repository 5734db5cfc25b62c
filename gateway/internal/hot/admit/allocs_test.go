package admit

import "testing"

// wantNoAllocs runs f often and demands that it allocates nothing. Under the race detector a sync.Pool drops what it is given
// at random, so there the runs show only that nothing races.
func wantNoAllocs(t *testing.T, f func()) {
	t.Helper()
	if n := testing.AllocsPerRun(1000, f); n != 0 && !raceDetector {
		t.Errorf("%v allocations", n)
	}
}
