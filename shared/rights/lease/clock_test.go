package lease

import (
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestClockFollowsTheKernel: also when what was remembered is wrong, as it is after the machine was suspended: then wall time has
// gone on and monotonic time has not.
func TestClockFollowsTheKernel(t *testing.T) {
	kernel := func() time.Duration {
		var ts unix.Timespec
		if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil {
			t.Fatal(err)
		}
		return time.Duration(ts.Nano())
	}
	check := func(what string) {
		t.Helper()
		before, got, after := kernel(), Clock(), kernel()
		if got < before-time.Second || got > after+time.Second {
			t.Errorf("%s: %v, the kernel says %v to %v", what, got, before, after)
		}
	}
	check("at first")
	check("again")
	asleep := *compared.Load()
	asleep.at = time.Since(started)
	asleep.boot -= time.Hour // the machine has slept for an hour since
	asleep.wall -= time.Hour
	compared.Store(&asleep)
	check("after an hour's sleep")
	if g := compared.Load(); g.boot == asleep.boot {
		t.Error("the sleep was not noticed")
	}
}
