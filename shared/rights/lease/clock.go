package lease

import (
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// Clock is the time since this host was started, also while it was suspended: unlike the monotonic time of package time, which
// stands still with a suspended machine, it tells a holder that wakes that its lease is long over.
//
// Asking the kernel for that costs a system call, too much for every decision. So what lies between it and the monotonic time is
// remembered for a moment, and asked for again as soon as wall time and monotonic time have moved apart, as they do over a
// suspension (or when the wall clock is set, which costs a call and nothing else).
func Clock() time.Duration {
	now := time.Now()
	mono := now.Sub(started)
	if c := compared.Load(); c != nil && mono-c.at < compareEvery {
		if apart := wallOver(now, mono) - c.wall; apart < tolerance && apart > -tolerance {
			return mono + c.boot
		}
	}
	return compare()
}

const (
	// compareEvery is how long a comparison serves, tolerance how far wall and monotonic time may move apart meanwhile.
	compareEvery = 100 * time.Millisecond
	tolerance    = 5 * time.Millisecond
	// closeEnough is how long a comparison may take, of which it tries a few.
	closeEnough = time.Millisecond
	tries       = 5
)

// comparison is how far other clocks are ahead of the monotonic one, at some time of that.
type comparison struct{ at, wall, boot time.Duration }

var (
	started  = time.Now()
	compared atomic.Pointer[comparison]
)

func wallOver(now time.Time, mono time.Duration) time.Duration {
	return time.Duration(now.UnixNano()-started.UnixNano()) - mono
}

func compare() time.Duration {
	var best comparison
	shortest := time.Duration(1<<63 - 1)
	for i := 0; i < tries && shortest > closeEnough; i++ {
		before := time.Now()
		mono := before.Sub(started)
		var t unix.Timespec
		boot := mono
		if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &t); err == nil { // else a kernel without it
			boot = time.Duration(t.Nano())
		}
		if took := time.Since(before); took < shortest {
			shortest, best = took, comparison{mono, wallOver(before, mono), boot - mono}
		}
	}
	compared.Store(&best)
	return time.Since(started) + best.boot
}
