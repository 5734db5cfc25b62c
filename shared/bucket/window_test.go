package bucket

import (
	"math/big"
	"testing"
	"time"

	"pgregory.net/rapid"

	"partidor.dev/partidor/shared/limit"
)

// use is one admitted request.
type use struct{ at, cost int64 }

// The plain definitions of the window algorithms, over everything that was ever admitted, in exact arithmetic: what counts of
// history at now.
var windowDefinitions = map[limit.Algorithm]func(history []use, now, length int64) *big.Rat{
	limit.FixedWindow: func(history []use, now, length int64) *big.Rat {
		return sum(history, func(at int64) bool { return at/length == now/length })
	},
	limit.SlidingWindowLog: func(history []use, now, length int64) *big.Rat {
		return sum(history, func(at int64) bool { return at > now-length })
	},
	limit.SlidingWindowCounter: func(history []use, now, length int64) *big.Rat {
		present := sum(history, func(at int64) bool { return at/length == now/length })
		before := sum(history, func(at int64) bool { return at/length == now/length-1 })
		left := rat((now/length+1)*length-now, length)
		return present.Add(present, before.Mul(before, left))
	},
}

func sum(history []use, counts func(at int64) bool) *big.Rat {
	total := new(big.Rat)
	for _, u := range history {
		if counts(u.at) {
			total.Add(total, rat(u.cost, 1))
		}
	}
	return total
}

// TestWindowDefinitions holds the window algorithms, in memory and in Redis, against their definitions.
func TestWindowDefinitions(t *testing.T) {
	w := newWorld(t)
	for algorithm, used := range windowDefinitions {
		t.Run(algorithm.String(), func(t *testing.T) {
			rapid.Check(t, func(rt *rapid.T) {
				w.reset()
				rule := &limit.Rule{
					Capacity: rapid.Int64Range(1, 30).Draw(rt, "capacity"), PeriodSeconds: 1, Algorithm: algorithm,
					WindowSeconds: rapid.SampledFrom([]int64{1, 7, 60}).Draw(rt, "window"),
				}
				share := rapid.SampledFrom([]limit.Share{limit.Whole, 700_000}).Draw(rt, "share")
				length := rule.WindowSeconds * 1_000_000
				var history []use
				for range rapid.IntRange(1, 40).Draw(rt, "requests") {
					w.advance(rapid.SampledFrom([]int64{0, 0, 1, length / 7, length / 2, length, 2*length + 1}).Draw(rt, "elapsed"))
					l := one(rule, rapid.Int64Range(1, rule.Capacity).Draw(rt, "cost"))
					l[0].Base, l[0].Late = share, rapid.SampledFrom([]limit.Share{0, 0, 0, share / 2}).Draw(rt, "late")
					capacity := new(big.Rat).Mul(rat(rule.Capacity, 1), rat(int64(l[0].Counting()), 1_000_000))
					d := mustTake(t, w.redis, l)
					if m := mustTake(t, w.memory, l); m.Outcome != d.Outcome || m.Tokens != d.Tokens {
						rt.Fatalf("memory %+v, redis %+v", m, d)
					}
					room := new(big.Rat).Sub(capacity, used(history, w.now, length))
					gap, _ := new(big.Rat).Sub(room, rat(l[0].Cost, 1)).Float64()
					if fits := gap >= 0; (gap < -2*tolerance || gap >= 0) && fits != (d.Outcome == limit.Allowed) {
						rt.Fatalf("room %v for cost %d, decision %+v", room, l[0].Cost, d)
					}
					if d.Outcome == limit.Allowed {
						history = append(history, use{w.now, l[0].Cost})
					}
				}
			})
		})
	}
}

// Calendar windows are true UTC hours, days and months, and the Lua and the Go calendar agree. (request-path D43, D44)
func TestCalendarWindows(t *testing.T) {
	w := newWorld(t)
	day := func(y int, m time.Month, d, hour, minute int) time.Time {
		return time.Date(y, m, d, hour, minute, 59, 0, time.UTC)
	}
	for _, c := range []struct {
		calendar limit.Calendar
		at, next time.Time
	}{
		{limit.CalendarHour, day(2026, 3, 29, 1, 59), time.Date(2026, 3, 29, 2, 0, 0, 0, time.UTC)},
		{limit.CalendarDay, day(2026, 10, 25, 23, 59), time.Date(2026, 10, 26, 0, 0, 0, 0, time.UTC)},
		{limit.CalendarMonth, day(2027, 1, 31, 12, 0), time.Date(2027, 2, 1, 0, 0, 0, 0, time.UTC)},
		{limit.CalendarMonth, day(2027, 2, 1, 0, 0), time.Date(2027, 3, 1, 0, 0, 0, 0, time.UTC)},
		{limit.CalendarMonth, day(2028, 2, 29, 23, 59), time.Date(2028, 3, 1, 0, 0, 0, 0, time.UTC)},
		{limit.CalendarMonth, day(2100, 2, 28, 0, 0), time.Date(2100, 3, 1, 0, 0, 0, 0, time.UTC)},
		{limit.CalendarMonth, day(2026, 12, 31, 23, 59), time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC)},
	} {
		w.reset()
		w.advance(c.at.UnixMicro() - w.now)
		rule := &limit.Rule{Capacity: 2, PeriodSeconds: 1, Algorithm: limit.FixedWindow, Calendar: c.calendar}
		for _, store := range []Store{w.redis, w.memory} {
			mustTake(t, store, one(rule, 2))
			if d := mustTake(t, store, one(rule, 1)); d.Outcome != limit.Refused || d.RetryAfter != c.next.Sub(c.at) {
				t.Errorf("%v at %v: %v, retry after %v, want %v", c.calendar, c.at, d.Outcome, d.RetryAfter, c.next.Sub(c.at))
			}
		}
		w.advance(c.next.Sub(c.at).Microseconds() - 1)
		for _, store := range []Store{w.redis, w.memory} {
			if d := mustTake(t, store, one(rule, 1)); d.Outcome != limit.Refused {
				t.Errorf("%v just before %v: %v", c.calendar, c.next, d.Outcome)
			}
		}
		w.advance(1)
		for _, store := range []Store{w.redis, w.memory} {
			if d := mustTake(t, store, one(rule, 2)); d.Outcome != limit.Allowed {
				t.Errorf("%v at %v: %v", c.calendar, c.next, d.Outcome)
			}
		}
	}
}

// Every month from 1970 to 2200 begins and ends in Lua where it does in Go.
func TestLuaCalendarFollowsGregory(t *testing.T) {
	w := newWorld(t)
	w.reset()
	rule := &limit.Rule{Capacity: 1, PeriodSeconds: 1, Algorithm: limit.FixedWindow, Calendar: limit.CalendarMonth}
	n := NumbersOf(rule, limit.Whole)
	for at := time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC); at.Year() < 2200; at = at.AddDate(0, 1, 13) {
		w.advance(at.UnixMicro() - w.now)
		start, length := n.windowOf(w.now)
		d := mustTake(t, w.redis, one(rule, 1))
		if want := time.Duration(start+length-w.now) * time.Microsecond; d.Outcome != limit.Allowed || d.ResetAfter != want {
			t.Fatalf("%v: %v, reset after %v, want %v", at, d.Outcome, d.ResetAfter, want)
		}
	}
}

// A raised window admits the difference at once, a lowered one refuses at once; nothing that was used is forgotten. (limits A2, A10)
func TestWindowRuleChanges(t *testing.T) {
	for algorithm := limit.FixedWindow; algorithm <= limit.SlidingWindowCounter; algorithm++ {
		t.Run(algorithm.String(), func(t *testing.T) {
			w := newWorld(t)
			w.reset()
			at := func(capacity, number int64) []Limit {
				l := one(&limit.Rule{Capacity: capacity, PeriodSeconds: 1, Algorithm: algorithm, WindowSeconds: 3600}, 1)
				l[0].Revision.Number = number
				return l
			}
			count := func(l []Limit) (n int) {
				for mustTake(t, w.redis, l).Outcome == limit.Allowed {
					n++
				}
				return n
			}
			if n := count(at(10, 1)); n != 10 {
				t.Errorf("10 an hour admitted %d", n)
			}
			if n := count(at(20, 2)); n != 10 {
				t.Errorf("raised to 20, admitted %d more, want 10", n)
			}
			if n := count(at(5, 3)); n != 0 {
				t.Errorf("lowered to 5, admitted %d more", n)
			}
			if d := mustTake(t, w.redis, at(20, 2)); d.Outcome != limit.Refused || d.Rule.Capacity != 5 {
				t.Errorf("a stale caller was answered by %+v: %v", d.Rule, d.Outcome)
			}
		})
	}
}

// What comes back unused is there again, whatever the algorithm, and a log then forgets its newest entries.
func TestWindowsTakeBackWhatWasNotUsed(t *testing.T) {
	for _, algorithm := range []limit.Algorithm{limit.FixedWindow, limit.SlidingWindowLog, limit.SlidingWindowCounter} {
		t.Run(algorithm.String(), func(t *testing.T) {
			w := newWorld(t)
			for _, store := range []func() Store{func() Store { return w.redis }, func() Store { return w.memory }} {
				w.reset()
				s := store()
				take := one(&limit.Rule{Capacity: 5, PeriodSeconds: 1, Algorithm: algorithm, WindowSeconds: 1000}, 1)
				back := one(take[0].Rule, 0)
				back[0].Owed = -1
				for range 100 {
					if d := mustTake(t, s, take); d.Outcome != limit.Allowed {
						t.Fatalf("taken and given back, then %v", d.Outcome)
					}
					w.advance(1000)
					mustTake(t, s, back)
				}
				for i := range 5 {
					if d := mustTake(t, s, take); d.Outcome != limit.Allowed || d.Remaining != int64(4-i) {
						t.Fatalf("%d: %v, remaining %d", i, d.Outcome, d.Remaining)
					}
				}
				if d := mustTake(t, s, take); d.Outcome != limit.Refused {
					t.Errorf("6th of 5: %v", d.Outcome)
				}
			}
		})
	}
}
