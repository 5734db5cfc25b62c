package snapshot

import (
	"testing"
	"testing/synctest"
	"time"

	"partidor.dev/partidor/shared/limit"
)

// Base shares of eu, hour by hour: 50 %, 20 %, 40 %, 70 %. What is not late is the least of them within a rule's window.
func TestLateIsWhatTheWindowHasGained(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		at := func(hoursAgo int) time.Time { return time.Now().Add(-time.Duration(hoursAgo) * time.Hour) }
		b := Empty("eu").Edit()
		err := b.SetRegions([]Region{
			{Name: "eu", Base: 700_000, Earlier: []Earlier{{500_000, at(3)}, {200_000, at(2)}, {400_000, at(1)}}},
			{Name: "us", Base: 300_000, Earlier: []Earlier{{500_000, at(3)}, {600_000, at(1)}}},
		}, limit.Revision{Number: 1})
		if err != nil {
			t.Fatal(err)
		}
		window := func(seconds int64) *limit.Rule {
			return &limit.Rule{Capacity: 100, PeriodSeconds: 1, Algorithm: limit.FixedWindow, WindowSeconds: seconds, Revision: limit.Revision{Number: 1}}
		}
		b.SetRule("t", "minute", window(60))
		b.SetRule("t", "hours", window(2*3600))
		b.SetRule("t", "day", window(86_400))
		b.SetRule("t", "moved", window(86_400))
		b.MarkMoved(limit.Key{Tenant: "t", Route: "moved"}, 700_000)
		b.SetRule("t", "month", &limit.Rule{Capacity: 100, PeriodSeconds: 1, Algorithm: limit.FixedWindow, Calendar: limit.CalendarMonth, Revision: limit.Revision{Number: 1}})
		b.SetRule("t", "fast", &limit.Rule{Capacity: 100, Refill: 100, PeriodSeconds: 1, Revision: limit.Revision{Number: 1}})
		b.SetRule("t", "slow", &limit.Rule{Capacity: 5, Refill: 5, PeriodSeconds: 7 * 86_400, Revision: limit.Revision{Number: 1}})
		b.SetRule("t", "never", &limit.Rule{Capacity: limit.MaxTokens, Refill: 1, PeriodSeconds: limit.MaxPeriodSeconds, Revision: limit.Revision{Number: 1}})
		s := b.Build()
		late := func(route string) limit.Share {
			m := s.Lookup("t", route)
			return s.Late(&m, time.Now())
		}
		for route, want := range map[string]limit.Share{
			"minute": 0, "hours": 300_000, "day": 500_000, "moved": 0, "month": 500_000, "fast": 0, "slow": 500_000, "never": 500_000,
		} {
			if got := late(route); got != want {
				t.Errorf("%s: %d late, want %d", route, got, want)
			}
		}
		time.Sleep(time.Hour) // of the bubble
		if got := late("hours"); got != 0 {
			t.Errorf("two hours after the last change %d of a window of two hours are late", got)
		}
		if got := late("day"); got != 500_000 {
			t.Errorf("day: %d late", got)
		}
	})
}

// A tiny limit's new home begins with nothing while its tokens may have been used at the old one.
func TestLateHomeOfTinyLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		changed := time.Now()
		h := NewHolder("us")
		h.ConsumeAtHome()
		err := h.Update(func(b *Builder) error {
			b.SetRule("t", "tiny", &limit.Rule{Capacity: 2, Refill: 1, PeriodSeconds: 30, Revision: limit.Revision{Number: 1}})
			return b.SetRegions([]Region{
				{Name: "eu", Base: 400_000, Earlier: []Earlier{{600_000, changed}}}, {Name: "us", Base: 600_000, Earlier: []Earlier{{400_000, changed}}},
			}, limit.Revision{Number: 1})
		})
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []limit.Share{limit.Whole, 0} {
			m := h.Load().Lookup("t", "tiny")
			if got := h.Load().Late(&m, time.Now()); m.Home != "us" || m.Base != limit.Whole || got != want {
				t.Errorf("home %q, base %d, late %d, want %d", m.Home, m.Base, got, want)
			}
			time.Sleep(time.Minute) // of the bubble: the time to fill
		}
	})
}
