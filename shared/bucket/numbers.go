package bucket

import (
	"fmt"
	"strconv"
	"strings"

	"partidor.dev/partidor/shared/limit"
)

// Numbers is what a bucket needs to know of a rule, in the form that is kept beside its level: the newest revision decides,
// also for a caller that has not heard of it yet.
type Numbers struct {
	// Capacity and Refill in tokens, Refill per Period seconds.
	Capacity, Refill, Period int64
	// Base is the region's base share under that revision.
	Base      limit.Share
	Algorithm limit.Algorithm
	// Window in seconds, or Calendar.
	Window   int64
	Calendar limit.Calendar
	// Shards is 1, or the number of buckets that share the slice.
	Shards int
}

// NumbersOf takes the numbers of a rule under a base share, for one bucket that holds the whole slice.
func NumbersOf(r *limit.Rule, base limit.Share) Numbers {
	return Numbers{
		Capacity: r.Capacity, Refill: r.Refill, Period: max(1, r.PeriodSeconds), Base: base,
		Algorithm: r.Algorithm, Window: r.WindowSeconds, Calendar: r.Calendar, Shards: 1,
	}
}

// kind tells which numbers count alike: only between those does what was used carry over.
func (n *Numbers) kind() (k struct {
	algorithm limit.Algorithm
	window    int64
	calendar  limit.Calendar
}) {
	k.algorithm, k.window, k.calendar = n.Algorithm, n.Window, n.Calendar
	return k
}

// Rule is r with these numbers in place of its own.
func (n *Numbers) Rule(r *limit.Rule, rev limit.Revision) *limit.Rule {
	c := *r
	c.Capacity, c.Refill, c.PeriodSeconds, c.Revision = n.Capacity, n.Refill, n.Period, rev
	c.Algorithm, c.WindowSeconds, c.Calendar = n.Algorithm, n.Window, n.Calendar
	return &c
}

var calendarLetters = [...]byte{limit.CalendarHour: 'h', limit.CalendarDay: 'd', limit.CalendarMonth: 'm'}

// appendText is the `rule` field of lua/prelude.lua, its words separated by sep.
func (n *Numbers) appendText(dst []byte, sep byte) []byte {
	dst = strconv.AppendInt(dst, n.Capacity, 10)
	dst = strconv.AppendInt(append(dst, sep), n.Refill, 10)
	dst = strconv.AppendInt(append(dst, sep), n.Period, 10)
	dst = strconv.AppendInt(append(dst, sep), int64(n.Base), 10)
	switch {
	case n.Algorithm != limit.TokenBucket:
		dst = append(dst, sep, '0'+byte(n.Algorithm), sep)
		if n.Calendar != limit.NoCalendar {
			return append(dst, calendarLetters[n.Calendar])
		}
		return strconv.AppendInt(dst, n.Window, 10)
	case n.Shards > 1:
		return strconv.AppendInt(append(dst, sep, 's', sep), int64(n.Shards), 10)
	}
	return dst
}

// parseNumbers reads what appendText wrote.
func parseNumbers(text string, sep byte) (Numbers, error) {
	n := Numbers{Shards: 1}
	f := strings.Split(text, string(sep))
	if len(f) != 4 && len(f) != 6 {
		return n, fmt.Errorf("rule %q: %d words, must be 4 or 6", text, len(f))
	}
	var base int64
	for i, into := range []*int64{&n.Capacity, &n.Refill, &n.Period, &base} {
		v, err := strconv.ParseInt(f[i], 10, 64)
		if err != nil || v < 0 {
			return n, fmt.Errorf("rule %q: bad number %q", text, f[i])
		}
		*into = v
	}
	n.Base = limit.Share(base)
	if n.Capacity == 0 || n.Period == 0 || n.Base > limit.Whole {
		return n, fmt.Errorf("rule %q: out of bounds", text)
	}
	if len(f) == 6 {
		return n, n.parseKind(text, f[4], f[5])
	}
	if n.Refill == 0 {
		return n, fmt.Errorf("rule %q: no refill", text)
	}
	return n, nil
}

func (n *Numbers) parseKind(text, kind, arg string) error {
	v, err := strconv.ParseInt(arg, 10, 32)
	if kind == "s" {
		if err != nil || v < 1 || v > limit.MaxShards || n.Refill == 0 {
			return fmt.Errorf("rule %q: bad shards", text)
		}
		n.Shards = int(v)
		return nil
	}
	if len(kind) != 1 || kind[0] < '1' || kind[0] > '3' {
		return fmt.Errorf("rule %q: unknown algorithm", text)
	}
	n.Algorithm = limit.Algorithm(kind[0] - '0')
	for c, letter := range calendarLetters {
		if letter != 0 && arg == string(letter) {
			n.Calendar = limit.Calendar(c)
			return nil
		}
	}
	if err != nil || v < 1 {
		return fmt.Errorf("rule %q: bad window", text)
	}
	n.Window = v
	return nil
}
