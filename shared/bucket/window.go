package bucket

import (
	"math"
	"slices"
	"sort"
	"time"

	"partidor.dev/partidor/shared/limit"
)

// Window is what window algorithms keep instead of a level that refills: what was used. Used ≤ the slice's capacity is the
// limit in each window, so after a change of rule or share a smaller slice refuses at once and a larger one has more room at
// once. Windows of so many seconds are counted from 1970; calendar windows are UTC hours, days and months.
//
// A fixed window may admit its capacity just before an edge and again just after it. The sliding log never admits more than
// the capacity in any interval of one window. The sliding counter estimates that from two fixed windows, taking what was used
// in the previous one as spread evenly over it.
type Window struct {
	// Used in the window that holds the level's time (fixed, counter); Prev in the one before (counter).
	Used, Prev float64
	// Log holds the time (µs) of every token used, in order.
	Log []int64
}

// WindowOf is the window of a fixed window rule that holds at: from start on, before end.
func WindowOf(rule *limit.Rule, at time.Time) (start, end time.Time) {
	n := NumbersOf(rule, limit.Whole)
	from, length := n.windowOf(at.UnixMicro())
	return time.UnixMicro(from), time.UnixMicro(from + length)
}

// windowOf is start and length (µs) of the window that holds t.
func (n *Numbers) windowOf(t int64) (start, length int64) {
	switch n.Calendar {
	case limit.CalendarHour:
		length = 3600_000_000
	case limit.CalendarDay:
		length = 86_400_000_000
	case limit.CalendarMonth:
		at := time.UnixMicro(t).UTC()
		first := time.Date(at.Year(), at.Month(), 1, 0, 0, 0, 0, time.UTC)
		return first.UnixMicro(), first.AddDate(0, 1, 0).UnixMicro() - first.UnixMicro()
	default:
		length = n.Window * 1_000_000
	}
	start = t / length * length
	if start > t {
		start -= length
	}
	return start, length
}

// room is the level of a window: what may still be used.
func (b *bucket) room(now int64) float64 {
	if b.Numbers.Algorithm != limit.SlidingWindowCounter {
		return b.slice.Capacity - b.Used
	}
	start, length := b.Numbers.windowOf(now)
	return b.slice.Capacity - (float64(b.Prev*float64(start+length-now))/float64(length) + b.Used)
}

// roll brings the counts to now. A clock stepped back keeps them, in the window it finds itself in.
func (b *bucket) roll(now int64) {
	if b.Numbers.Algorithm == limit.SlidingWindowLog {
		b.Used = float64(len(b.Log) - b.expired(now))
	} else if start, length := b.Numbers.windowOf(now); b.At < start {
		b.Prev = 0
		if b.At >= start-length {
			b.Prev = b.Used
		}
		b.Used = 0
	}
	b.last, b.At = min(b.At, now), now
	b.Tokens = b.room(now)
}

// expired is how many entries of the log no longer count.
func (b *bucket) expired(now int64) int {
	return sort.Search(len(b.Log), func(i int) bool { return b.Log[i] > now-b.Numbers.Window*1_000_000 })
}

// beginWindow starts a window at the level there is.
func (b *bucket) beginWindow(now int64) {
	b.Used, b.Prev = max(0, b.slice.Capacity-b.Tokens), 0
	b.last, b.At = now, now
	b.Log, b.added = nil, 0
	if b.Numbers.Algorithm == limit.SlidingWindowLog {
		b.Used = math.Ceil(b.Used - tolerance)
		b.added = int(b.Used)
	}
}

// consume takes amount, which may be negative, from the level. Windows count it; a log gives back its newest entries.
func (b *bucket) consume(amount float64) {
	b.Tokens = tidy(b.Tokens - amount)
	switch b.Numbers.Algorithm {
	case limit.TokenBucket:
		return
	case limit.SlidingWindowLog:
		if amount < 0 {
			amount = -math.Floor(tolerance - amount)
		} else {
			amount = math.Ceil(amount - tolerance)
		}
		b.added += int(amount)
	}
	b.Used = max(0, b.Used+amount)
}

// windowWait is the time (µs) until cost, which is at most the slice's capacity, fits if nobody uses anything.
func (b *bucket) windowWait(cost float64, now int64) float64 {
	start, length := b.Numbers.windowOf(now)
	left := float64(start + length - now)
	budget := b.slice.Capacity - cost
	switch b.Numbers.Algorithm {
	case limit.FixedWindow:
		return left
	case limit.SlidingWindowCounter:
		if b.Used <= budget+tolerance && b.Prev > 0 {
			return max(1, math.Ceil(left-float64(max(0, budget-b.Used)*float64(length))/b.Prev))
		}
		return left + max(0, math.Ceil(float64(length)-float64(max(0, budget)*float64(length))/b.Used))
	}
	surplus := int(math.Ceil(b.Used - budget - tolerance))
	if i := b.expired(now) + surplus - 1; i < len(b.Log) {
		return min(float64(length), float64(b.Log[i]+length-now))
	}
	return float64(length)
}

// windowReset is the time (µs) until nothing counts any more, at most: the log goes by the last write.
func (b *bucket) windowReset(now int64) float64 {
	start, length := b.Numbers.windowOf(now)
	left := start + length - now
	switch {
	case b.Used <= 0 && (b.Prev <= 0 || b.Numbers.Algorithm == limit.SlidingWindowLog):
		return 0
	case b.Numbers.Algorithm == limit.SlidingWindowLog:
		last := b.last
		if b.added > 0 {
			last = now
		}
		return float64(max(0, last+length-now))
	case b.Numbers.Algorithm == limit.SlidingWindowCounter && b.Used > 0:
		left += length
	}
	return float64(left)
}

// keepLog forgets what no longer counts, pulls entries of a clock that was ahead to the present, and adds the new ones or takes
// back the newest. The slice is never changed in place: the state it came from may still be read.
func (b *bucket) keepLog(now int64) {
	if b.Numbers.Algorithm != limit.SlidingWindowLog {
		b.Log = nil
		return
	}
	log := slices.Clone(b.Log[b.expired(now):])
	if b.stepped {
		for i := len(log) - 1; i >= 0 && log[i] > now; i-- {
			log[i] = now
		}
	}
	log = log[:max(0, len(log)+min(0, b.added))]
	for range b.added {
		log = append(log, now)
	}
	b.Log, b.added = log, 0
}
