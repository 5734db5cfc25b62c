package fallback

import (
	"testing"

	"partidor.dev/partidor/shared/limit"
)

// What a changed base split has brought of late is not counted by windows here either.
func TestWindowsLeaveOutTheLateShare(t *testing.T) {
	for algorithm, want := range map[limit.Algorithm]int{limit.FixedWindow: 30, limit.SlidingWindowLog: 30, limit.SlidingWindowCounter: 30} {
		l := one("t1", &limit.Rule{Capacity: 100, PeriodSeconds: 1, Algorithm: algorithm, WindowSeconds: 86_400}, 1)
		l[0].Base, l[0].Late = 700_000, 400_000
		local, got := NewLocal(epoch, 100), 0
		for local.Take(epoch, l, Terms{Instances: 1}).Outcome == limit.Allowed {
			got++
		}
		if got != want {
			t.Errorf("%v: admitted %d, want %d", algorithm, got, want)
		}
	}
}
