package limit

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
	"time"
)

// Bounds of what a rule may say. Everything inside them is exact; everything outside is refused at write.
const (
	// MaxTokens bounds capacity and cost: the largest integer a Redis script counts exactly (2^53 − 1).
	MaxTokens = 1<<53 - 1
	// MaxRefillPerSecond bounds refill ÷ period.
	MaxRefillPerSecond = 1_000_000_000
	// MaxPeriodSeconds bounds the period: ten years of 365.25 days.
	MaxPeriodSeconds = 315_576_000
	// MaxShards bounds shards.
	MaxShards = 64
	// MinShardCapacity is the least capacity per shard. A shard is further divided among regions, and what it holds must do
	// for any request: parts of a token would never admit one.
	MinShardCapacity = 100
	// MaxLogCapacity bounds the capacity of a sliding window log, whose memory grows with it.
	MaxLogCapacity = 10_000
)

// Algorithm names how a slice is counted.
type Algorithm uint8

// The algorithms. TokenBucket is the default and the only one that lends, prefetches or shards.
const (
	TokenBucket Algorithm = iota
	FixedWindow
	SlidingWindowLog
	SlidingWindowCounter
)

var algorithmNames = [...]string{"token_bucket", "fixed_window", "sliding_window_log", "sliding_window_counter"}

func (a Algorithm) String() string { return nameOf(algorithmNames[:], uint8(a)) }

// MarshalText and UnmarshalText carry the ledger's spelling.
func (a Algorithm) MarshalText() ([]byte, error) { return []byte(a.String()), nil }

// UnmarshalText reads the ledger's spelling.
func (a *Algorithm) UnmarshalText(b []byte) (err error) {
	*a, err = parseName[Algorithm](algorithmNames[:], "algorithm", string(b))
	return err
}

// Calendar is a window that begins with a UTC hour, day or month.
type Calendar uint8

// The calendar windows; NoCalendar means the window is WindowSeconds long.
const (
	NoCalendar Calendar = iota
	CalendarHour
	CalendarDay
	CalendarMonth
)

var calendarNames = [...]string{"", "hour", "day", "month"}

func (c Calendar) String() string { return nameOf(calendarNames[:], uint8(c)) }

// MarshalText and UnmarshalText carry the ledger's spelling.
func (c Calendar) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// UnmarshalText reads the ledger's spelling.
func (c *Calendar) UnmarshalText(b []byte) (err error) {
	*c, err = parseName[Calendar](calendarNames[:], "window", string(b))
	return err
}

// Mode tells what a rule does with its verdict.
type Mode uint8

// The modes. Enforce is the default.
const (
	Enforce Mode = iota
	Shadow
	Block
	Unlimited
)

var modeNames = [...]string{"enforce", "shadow", "block", "unlimited"}

func (m Mode) String() string { return nameOf(modeNames[:], uint8(m)) }

// MarshalText and UnmarshalText carry the ledger's spelling.
func (m Mode) MarshalText() ([]byte, error) { return []byte(m.String()), nil }

// UnmarshalText reads the ledger's spelling.
func (m *Mode) UnmarshalText(b []byte) (err error) {
	*m, err = parseName[Mode](modeNames[:], "mode", string(b))
	return err
}

// OnError tells what to do when no bucket can be asked.
type OnError uint8

// The policies. OnErrorLocal, the local limiter, is the default.
const (
	OnErrorLocal OnError = iota
	OnErrorAllow
	OnErrorDeny
)

var onErrorNames = [...]string{"local", "allow", "deny"}

func (o OnError) String() string { return nameOf(onErrorNames[:], uint8(o)) }

// MarshalText and UnmarshalText carry the ledger's spelling.
func (o OnError) MarshalText() ([]byte, error) { return []byte(o.String()), nil }

// UnmarshalText reads the ledger's spelling.
func (o *OnError) UnmarshalText(b []byte) (err error) {
	*o, err = parseName[OnError](onErrorNames[:], "on_error", string(b))
	return err
}

// Rule is one limit's numbers and options. Who it applies to (a key or a template) is said beside it. A Rule is
// immutable once published.
type Rule struct {
	// Capacity is the burst, or the window's quota, in tokens.
	Capacity int64
	// Refill tokens come every PeriodSeconds: 5 and 60 is 5 per minute. Two integers, never a decimal. Zero Refill is
	// allowed for window algorithms only.
	Refill        int64
	PeriodSeconds int64
	Algorithm     Algorithm
	// WindowSeconds or Calendar is the window of a window algorithm.
	WindowSeconds int64
	Calendar      Calendar
	Mode          Mode
	OnError       OnError
	// Prefetch allows instances to take tokens ahead.
	Prefetch bool
	// Shards above 1 spreads the key over so many buckets, each with its part of the slice: a cost above that part is too large.
	// Going back to 1 begins one full bucket: a burst once more.
	Shards int
	// MaxCost is the largest cost of a request in tokens: a dearer one is too large, and limits that hold only few of the dearest
	// are tiny. 0 where the rule declares none: any cost up to the capacity is tried, and 1 is what shares are made for.
	MaxCost int64
	// HideHeaders switches the RateLimit headers off; a 429 still says Retry-After.
	HideHeaders bool
	// ExpiresAt ends a temporary override; zero means never.
	ExpiresAt time.Time
	// Revision is when the ledger last changed the rule.
	Revision Revision
}

// DefaultRule is the limit of a key that no rule matches.
var DefaultRule = Rule{Capacity: 20, Refill: 10, PeriodSeconds: 1}

// Validate refuses everything that cannot be enforced exactly. All faults are reported, each naming its field.
func (r *Rule) Validate() error {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if r.Capacity <= 0 {
		bad("capacity: %d, must be at least 1 (to refuse everything say mode: block, to limit nothing mode: unlimited)", r.Capacity)
	}
	if r.Capacity > MaxTokens {
		bad("capacity: %d, must be at most %d", r.Capacity, int64(MaxTokens))
	}
	if r.PeriodSeconds < 1 || r.PeriodSeconds > MaxPeriodSeconds {
		bad("refill_period_seconds: %d, must be from 1 to %d", r.PeriodSeconds, MaxPeriodSeconds)
	}
	windowed := r.Algorithm != TokenBucket
	if !windowed || r.Refill != 0 {
		if r.Refill <= 0 {
			bad("refill_per_second: %d, must be at least 1 (to refuse everything say mode: block, to limit nothing mode: unlimited)", r.Refill)
		} else if r.Refill > MaxTokens {
			bad("refill_per_second: %d, must be at most %d", r.Refill, int64(MaxTokens))
		} else if r.PeriodSeconds >= 1 && r.PeriodSeconds <= MaxPeriodSeconds && r.Refill > MaxRefillPerSecond*r.PeriodSeconds {
			bad("refill_per_second: %d per %d s, must be at most %d per second", r.Refill, r.PeriodSeconds, MaxRefillPerSecond)
		}
	}
	if windowed {
		errs = append(errs, r.validateWindow()...)
	} else if r.WindowSeconds != 0 || r.Calendar != NoCalendar {
		bad("window: only for window algorithms, not for %s", r.Algorithm)
	}
	if r.Shards < 0 || r.Shards > MaxShards {
		bad("shards: %d, must be from 0 to %d", r.Shards, MaxShards)
	} else if r.Shards > 1 && r.Capacity > 0 && r.Capacity < int64(r.Shards)*MinShardCapacity {
		bad("shards: %d, needs a capacity of at least %d", r.Shards, r.Shards*MinShardCapacity)
	}
	if most := r.Capacity / max(int64(r.Shards), 1); r.MaxCost != 0 && (r.MaxCost < 0 || r.MaxCost > most) {
		bad("max_cost: %d, must be from 1 to %d, what a bucket holds", r.MaxCost, most)
	}
	if int(r.Algorithm) >= len(algorithmNames) {
		bad("algorithm: unknown")
	}
	if int(r.Mode) >= len(modeNames) {
		bad("mode: unknown")
	}
	if int(r.OnError) >= len(onErrorNames) {
		bad("on_error: unknown")
	}
	return errors.Join(errs...)
}

func (r *Rule) validateWindow() (errs []error) {
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	switch {
	case r.WindowSeconds != 0 && r.Calendar != NoCalendar:
		bad("window: give window_seconds or a calendar window, not both")
	case r.Calendar != NoCalendar && r.Algorithm != FixedWindow:
		bad("window: calendar windows are for fixed_window only")
	case r.Calendar == NoCalendar && (r.WindowSeconds < 1 || r.WindowSeconds > MaxPeriodSeconds):
		bad("window_seconds: %d, must be from 1 to %d", r.WindowSeconds, MaxPeriodSeconds)
	}
	if r.Algorithm == SlidingWindowLog && r.Capacity > MaxLogCapacity {
		bad("capacity: %d, must be at most %d for sliding_window_log, whose memory grows with it", r.Capacity, MaxLogCapacity)
	}
	if r.Prefetch {
		bad("prefetch: not for %s", r.Algorithm)
	}
	if r.Shards > 1 {
		bad("shards: not for %s", r.Algorithm)
	}
	return errs
}

// LargestCost is the largest cost of a request that regions' shares are made for: the declared one, else 1.
func (r *Rule) LargestCost() int64 { return max(r.MaxCost, 1) }

// TooLarge tells whether a request of this cost is dearer than the rule declares any to be. Above the capacity it is too large
// in any case, which its bucket tells.
func (r *Rule) TooLarge(cost int64) bool { return r.MaxCost > 0 && cost > r.MaxCost }

// Expired tells whether a temporary override has ended.
func (r *Rule) Expired(now time.Time) bool { return !r.ExpiresAt.IsZero() && !now.Before(r.ExpiresAt) }

// PolicyWindow is w of the RateLimit-Policy header: capacity ÷ rate, or the window, in seconds, rounded up, at least 1.
func (r *Rule) PolicyWindow() int64 {
	if r.Algorithm != TokenBucket {
		switch r.Calendar {
		case CalendarHour:
			return 3600
		case CalendarDay:
			return 86_400
		case CalendarMonth:
			return 31 * 86_400
		}
		return max(1, r.WindowSeconds)
	}
	return max(1, ceilMulDiv(r.Capacity, r.PeriodSeconds, r.Refill))
}

// ceilMulDiv is a·b ÷ c rounded up, exact, for a, b ≥ 0 and c > 0; MaxInt64 where the result does not fit.
func ceilMulDiv(a, b, c int64) int64 {
	hi, lo := bits.Mul64(uint64(a), uint64(b))
	if hi >= uint64(c) {
		return math.MaxInt64
	}
	q, rem := bits.Div64(hi, lo, uint64(c))
	if rem > 0 {
		q++
	}
	return int64(min(q, math.MaxInt64))
}

func parseName[T ~uint8](names []string, field, s string) (T, error) {
	for i, n := range names {
		if n == s {
			return T(i), nil
		}
	}
	return 0, fmt.Errorf("%s: %q, must be one of %q", field, s, names)
}
