package limit

import (
	"math"
	"math/big"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestRuleValidate(t *testing.T) {
	good := func() Rule { return Rule{Capacity: 200, Refill: 100, PeriodSeconds: 1} }
	for _, tt := range []struct {
		name   string
		change func(*Rule)
		want   string // "" means accepted
	}{
		{"plain", func(*Rule) {}, ""},
		{"one per ten years", func(r *Rule) { *r = Rule{Capacity: 1, Refill: 1, PeriodSeconds: MaxPeriodSeconds} }, ""},
		{"largest", func(r *Rule) { *r = Rule{Capacity: MaxTokens, Refill: 1e9, PeriodSeconds: 1} }, ""},
		{"burst below rate", func(r *Rule) { r.Capacity = 1 }, ""},
		{"capacity 0", func(r *Rule) { r.Capacity = 0 }, "capacity: 0, must be at least 1 (to refuse everything say mode: block"},
		{"capacity -1", func(r *Rule) { r.Capacity = -1 }, "mode: unlimited"},
		{"capacity 2^53", func(r *Rule) { r.Capacity = 1 << 53 }, "capacity: 9007199254740992, must be at most"},
		{"rate 0", func(r *Rule) { r.Refill = 0 }, "refill_per_second: 0"},
		{"rate -5", func(r *Rule) { r.Refill = -5 }, "refill_per_second: -5"},
		{"rate 2e9", func(r *Rule) { r.Refill = 2e9 }, "refill_per_second: 2000000000 per 1 s"},
		{"refill above 2^53", func(r *Rule) { r.Refill, r.PeriodSeconds = MaxTokens+1, MaxPeriodSeconds }, "must be at most 9007199254740991"},
		{"period 0", func(r *Rule) { r.PeriodSeconds = 0 }, "refill_period_seconds: 0"},
		{"period too long", func(r *Rule) { r.PeriodSeconds = MaxPeriodSeconds + 1 }, "refill_period_seconds"},
		{"window on a bucket", func(r *Rule) { r.WindowSeconds = 60 }, "window: only for window algorithms"},
		{"window missing", func(r *Rule) { r.Algorithm = FixedWindow }, "window_seconds: 0"},
		{"window", func(r *Rule) { *r = Rule{Capacity: 5, PeriodSeconds: 1, Algorithm: FixedWindow, WindowSeconds: 60} }, ""},
		{"calendar", func(r *Rule) {
			*r = Rule{Capacity: 5, PeriodSeconds: 1, Algorithm: FixedWindow, Calendar: CalendarDay}
		}, ""},
		{"both windows", func(r *Rule) {
			r.Algorithm, r.WindowSeconds, r.Calendar = FixedWindow, 60, CalendarDay
		}, "not both"},
		{"calendar log", func(r *Rule) { r.Algorithm, r.Calendar = SlidingWindowLog, CalendarDay }, "fixed_window only"},
		{"huge log", func(r *Rule) {
			r.Algorithm, r.WindowSeconds, r.Capacity = SlidingWindowLog, 60, MaxLogCapacity+1
		}, "memory grows"},
		{"sharded window", func(r *Rule) { r.Algorithm, r.WindowSeconds, r.Shards = FixedWindow, 60, 4 }, "shards: not for fixed_window"},
		{"prefetched window", func(r *Rule) { r.Algorithm, r.WindowSeconds, r.Prefetch = FixedWindow, 60, true }, "prefetch: not for"},
		{"shards", func(r *Rule) { r.Shards = MaxShards + 1 }, "shards: 65"},
		{"shards too small to admit anything", func(r *Rule) { r.Capacity, r.Shards = 399, 4 }, "shards: 4, needs a capacity of at least 400"},
		{"largest cost", func(r *Rule) { r.MaxCost = 200 }, ""},
		{"largest cost above the capacity", func(r *Rule) { r.MaxCost = 201 }, "max_cost: 201, must be from 1 to 200, what a bucket holds"},
		{"largest cost above a shard", func(r *Rule) { r.Capacity, r.Shards, r.MaxCost = 401, 4, 101 }, "max_cost: 101, must be from 1 to 100"},
		{"largest cost below zero", func(r *Rule) { r.MaxCost = -1 }, "max_cost: -1"},
		{"shards just large enough", func(r *Rule) { r.Capacity, r.Shards = 400, 4 }, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := good()
			tt.change(&r)
			err := r.Validate()
			switch {
			case tt.want == "" && err != nil:
				t.Errorf("refused: %v", err)
			case tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)):
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}

func TestRuleValidateReportsEveryFault(t *testing.T) {
	err := (&Rule{Capacity: -1, Refill: -1, PeriodSeconds: -1, Shards: -1}).Validate()
	for _, field := range []string{"capacity", "refill_per_second", "refill_period_seconds", "shards"} {
		if err == nil || !strings.Contains(err.Error(), field+":") {
			t.Errorf("%v does not name %s", err, field)
		}
	}
	if strings.Contains(err.Error(), "max_cost") {
		t.Errorf("%v names a field that is not set", err)
	}
}

func TestPolicyWindow(t *testing.T) {
	for _, tt := range []struct {
		rule Rule
		want int64
	}{
		{Rule{Capacity: 200, Refill: 100, PeriodSeconds: 1}, 2},
		{Rule{Capacity: 1, Refill: 100, PeriodSeconds: 1}, 1},
		{Rule{Capacity: 5, Refill: 5, PeriodSeconds: 60}, 60},
		{Rule{Capacity: 10, Refill: 3, PeriodSeconds: 1}, 4},
		{Rule{Capacity: MaxTokens, Refill: 1, PeriodSeconds: 1}, MaxTokens},
		{Rule{Capacity: MaxTokens, Refill: 1, PeriodSeconds: MaxPeriodSeconds}, math.MaxInt64},
		{Rule{Capacity: 5, Algorithm: FixedWindow, WindowSeconds: 90}, 90},
		{Rule{Capacity: 5, Algorithm: FixedWindow, Calendar: CalendarDay}, 86_400},
	} {
		if got := tt.rule.PolicyWindow(); got != tt.want {
			t.Errorf("%+v: %d, want %d", tt.rule, got, tt.want)
		}
	}
}

func TestPolicyWindowIsExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := Rule{
			Capacity:      rapid.Int64Range(1, MaxTokens).Draw(t, "capacity"),
			Refill:        rapid.Int64Range(1, 1e9).Draw(t, "refill"),
			PeriodSeconds: rapid.Int64Range(1, MaxPeriodSeconds).Draw(t, "period"),
		}
		want := new(big.Int).Mul(big.NewInt(r.Capacity), big.NewInt(r.PeriodSeconds))
		want.Add(want, big.NewInt(r.Refill-1)).Div(want, big.NewInt(r.Refill))
		if !want.IsInt64() {
			want.SetInt64(math.MaxInt64)
		}
		if got := r.PolicyWindow(); got != max(1, want.Int64()) {
			t.Fatalf("%+v: %d, want %v", r, got, want)
		}
	})
}

func TestExpired(t *testing.T) {
	now := time.Unix(1000, 0)
	if (&Rule{}).Expired(now) {
		t.Error("a rule without an end expired")
	}
	if r := (&Rule{ExpiresAt: now}); !r.Expired(now) || r.Expired(now.Add(-1)) {
		t.Error("the end must be exact")
	}
}

func TestNamesRoundTrip(t *testing.T) {
	for a := TokenBucket; a <= SlidingWindowCounter; a++ {
		b, _ := a.MarshalText()
		var back Algorithm
		if err := back.UnmarshalText(b); err != nil || back != a {
			t.Errorf("%s: %v, %v", a, back, err)
		}
	}
	var m Mode
	if err := m.UnmarshalText([]byte("shadwo")); err == nil || !strings.Contains(err.Error(), `mode: "shadwo"`) {
		t.Errorf("got %v", err)
	}
	if got := Algorithm(99).String(); got != "unknown" {
		t.Errorf("got %q", got)
	}
}
