package lease

import (
	"time"

	"golang.org/x/sys/unix"
)

// Clock is the time since this host was started, also while it was suspended: unlike the monotonic time of package time, which
// stands still with a suspended machine, it tells a holder that wakes that its lease is long over.
func Clock() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &t); err != nil {
		return time.Since(started) // a kernel without it
	}
	return time.Duration(t.Nano())
}

var started = time.Now()
