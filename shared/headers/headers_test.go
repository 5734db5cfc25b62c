package headers

import (
	"net/http"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"partidor.dev/partidor/shared/limit"
)

func rule(capacity, refill, period int64) *limit.Rule {
	return &limit.Rule{Capacity: capacity, Refill: refill, PeriodSeconds: period}
}

func key(route string) limit.Key { return limit.Key{Tenant: "t1", Route: route} }

func TestSet(t *testing.T) {
	const day = 86_400
	tests := []struct {
		name string
		d    limit.Decision
		want map[string]string
	}{
		{"in the middle of a slice of 70 %",
			limit.Decision{Key: key("create-order"), Rule: rule(200, 100, 1), Share: 700_000, Remaining: 139, Tokens: 139.5, ResetAfter: 8 * time.Millisecond},
			map[string]string{headerLimit: "200", headerRemaining: "139", headerReset: "1", headerPolicy: `"create-order";q=200;w=2`, headerRateLimit: `"create-order";r=139;t=2`}},
		{"burst above rate: r ÷ t never promises more than the rate",
			limit.Decision{Key: key("r"), Rule: rule(1000, 10, 1), Share: limit.Whole, Remaining: 1000, Tokens: 1000},
			map[string]string{headerLimit: "1000", headerRemaining: "1000", headerReset: "0", headerPolicy: `"r";q=1000;w=100`, headerRateLimit: `"r";r=1000;t=100`}},
		{"3600 per hour, burst 6, drained",
			limit.Decision{Key: key("r"), Rule: rule(6, 3600, 3600), Share: limit.Whole, Outcome: limit.Refused, RetryAfter: time.Second, ResetAfter: 6 * time.Second},
			map[string]string{headerLimit: "6", headerRemaining: "0", headerReset: "6", headerPolicy: `"r";q=6;w=6`, headerRateLimit: `"r";r=0;t=1`}},
		{"the last token taken: t is the wait for the next",
			limit.Decision{Key: key("r"), Rule: rule(1, 1, 600), Share: limit.Whole, Tokens: 0.25, ResetAfter: 450 * time.Second},
			map[string]string{headerLimit: "1", headerRemaining: "0", headerReset: "450", headerPolicy: `"r";q=1;w=600`, headerRateLimit: `"r";r=0;t=450`}},
		{"the rule was lowered under a full bucket: r ≤ q",
			limit.Decision{Key: key("r"), Rule: rule(10, 10, 1), Share: limit.Whole, Remaining: 5_000_000},
			map[string]string{headerLimit: "10", headerRemaining: "10", headerReset: "0", headerPolicy: `"r";q=10;w=1`, headerRateLimit: `"r";r=10;t=1`}},
		{"the largest numbers",
			limit.Decision{Key: key("r"), Rule: rule(limit.MaxTokens, 1_000_000_000, 1), Share: limit.Whole, Remaining: limit.MaxTokens},
			map[string]string{headerLimit: "9007199254740991", headerRemaining: "9007199254740991", headerReset: "0", headerPolicy: `"r";q=999999999999999;w=9007200`, headerRateLimit: `"r";r=999999999999999;t=9007200`}},
		{"no number of the list fields has more than 15 digits",
			limit.Decision{Key: key("r"), Rule: rule(limit.MaxTokens, 1, limit.MaxPeriodSeconds), Share: limit.Whole, Remaining: 1e15},
			map[string]string{headerLimit: "9007199254740991", headerRemaining: "1000000000000000", headerReset: "0", headerPolicy: `"r";q=999999999999999;w=999999999999999`, headerRateLimit: `"r";r=999999999999999;t=999999999999999`}},
		{"a debt is shown as nothing left",
			limit.Decision{Key: key("r"), Rule: rule(10, 1, 1), Share: limit.Whole, Remaining: -4, Tokens: -4, Outcome: limit.Refused, RetryAfter: 5 * time.Second, ResetAfter: 14 * time.Second},
			map[string]string{headerLimit: "10", headerRemaining: "0", headerReset: "14", headerPolicy: `"r";q=10;w=10`, headerRateLimit: `"r";r=0;t=5`}},
		{"a window resets as a whole",
			limit.Decision{Key: key("r"), Rule: &limit.Rule{Capacity: 1000, PeriodSeconds: 1, Algorithm: limit.FixedWindow, Calendar: limit.CalendarDay}, Share: limit.Whole, Remaining: 400, ResetAfter: time.Hour},
			map[string]string{headerLimit: "1000", headerRemaining: "400", headerReset: "3600", headerPolicy: `"r";q=1000;w=` + strconv.Itoa(day), headerRateLimit: `"r";r=400;t=3600`}},
		{"a name with quotes", limit.Decision{Key: key(`a"b\ü`), Rule: rule(1, 1, 1), Share: limit.Whole, Remaining: 1},
			map[string]string{headerLimit: "1", headerRemaining: "1", headerReset: "0", headerPolicy: `"a\"b\\%C3%BC";q=1;w=1`, headerRateLimit: `"a\"b\\%C3%BC";r=1;t=1`}},
		{"nothing is said of unlimited keys", limit.Decision{Rule: &limit.Rule{Mode: limit.Unlimited}}, nil},
		{"nor of shadow rules", limit.Decision{Key: key("r"), Rule: &limit.Rule{Capacity: 1, Refill: 1, PeriodSeconds: 1, Mode: limit.Shadow}}, nil},
		{"nor where headers are hidden", limit.Decision{Key: key("r"), Rule: &limit.Rule{Capacity: 1, Refill: 1, PeriodSeconds: 1, HideHeaders: true}}, nil},
		{"nor without a rule", limit.Decision{}, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			h := http.Header{}
			Set(h, &tt.d)
			got := map[string]string(nil)
			for name, values := range h {
				if got == nil {
					got = map[string]string{}
				}
				if len(values) != 1 {
					t.Errorf("%s has %d values", name, len(values))
				}
				got[name] = values[0]
			}
			if d := cmp.Diff(tt.want, got); d != "" {
				t.Error(d)
			}
		})
	}
}

// An upstream's list items stay, but for one of our name; its X- headers are replaced.
func TestSetBesideAnUpstreams(t *testing.T) {
	d := limit.Decision{Key: key("items"), Rule: rule(200, 100, 1), Share: limit.Whole, Remaining: 152}
	h := http.Header{
		headerRateLimit: {`"up";r=3;t=5, "items";r=9;t=9`, `"items"`},
		headerPolicy:    {`"up, \"items\"";q=3;w=5`, `"items" ;q=9;w=9,"other";q=1;w=1`},
		headerRemaining: {"3"}, headerReset: {"1", "2"},
	}
	Set(h, &d)
	want := http.Header{
		headerRateLimit: {`"up";r=3;t=5`, `"items";r=152;t=2`},
		headerPolicy:    {`"up, \"items\"";q=3;w=5`, `"other";q=1;w=1`, `"items";q=200;w=2`},
		headerRemaining: {"152"}, headerReset: {"0"}, headerLimit: {"200"},
	}
	if d := cmp.Diff(want, h); d != "" {
		t.Error(d)
	}
}

// For every decision: t ≥ 1, r and the seconds never negative, r ≤ q, and r spread over t never exceeds the slice's rate.
func TestNumbersKeepTheirPromise(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := rule(
			rapid.Int64Range(1, limit.MaxTokens).Draw(t, "capacity"),
			rapid.Int64Range(1, limit.MaxRefillPerSecond).Draw(t, "refill"),
			rapid.Int64Range(1, limit.MaxPeriodSeconds).Draw(t, "period"))
		share := limit.Share(rapid.Int64Range(0, int64(limit.Whole)).Draw(t, "share"))
		slice := r.SliceOf(share)
		tokens := rapid.Float64Range(-slice.Capacity, slice.Capacity).Draw(t, "tokens")
		d := limit.Decision{Rule: r, Share: share, Tokens: tokens, Remaining: int64(tokens)}
		if tokens < 1 && rapid.Bool().Draw(t, "refused") {
			d.Outcome, d.RetryAfter = limit.Refused, time.Duration(rapid.Int64Range(1, int64(time.Hour)).Draw(t, "wait"))
		}
		n := numbersOf(&d)
		if n.remaining < 0 || n.reset < 0 || n.window < 1 || n.spend < 1 || n.remaining > n.quota {
			t.Fatalf("%+v", n)
		}
		if rate := float64(n.remaining) / float64(n.spend); n.remaining > 0 && rate > slice.Rate*(1+1e-9) && n.spend < 999_999_999_999_999 {
			t.Fatalf("%+v promises %v per second of %v", n, rate, slice.Rate)
		}
	})
}

// Retry-After is whole seconds, at least 1, never early, and late by at most a second and 3 %, from 30 s on only.
func TestRetryAfter(t *testing.T) {
	for _, tt := range []struct {
		wait   time.Duration
		spread float64
		want   int64
	}{
		{0, 0, 1}, {4 * time.Millisecond, 0.99, 1}, {time.Second, 0.99, 1}, {1001 * time.Millisecond, 0.99, 2},
		{29 * time.Second, 0.99, 29}, {100 * time.Second, 0, 100}, {100 * time.Second, 0.99, 102},
		{600 * time.Second, 0, 600}, {600 * time.Second, 1, 618},
	} {
		if got := RetryAfter(tt.wait, tt.spread); got != tt.want {
			t.Errorf("RetryAfter(%s, %v) = %d, want %d", tt.wait, tt.spread, got, tt.want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		wait := time.Duration(rapid.Int64Range(0, int64(10_000*time.Hour)).Draw(t, "wait"))
		s := RetryAfter(wait, rapid.Float64Range(0, 1).Draw(t, "spread"))
		if told := time.Duration(s) * time.Second; s < 1 || told < wait || told > wait+time.Second+wait*3/100+time.Second {
			t.Fatalf("%s is told as %d s", wait, s)
		}
	})
}

// Two allocations: the text of all values, and the slice that holds them.
func TestSetAllocatesValuesOnly(t *testing.T) {
	d := limit.Decision{Key: key("create-order"), Rule: rule(200, 100, 1), Share: 700_000, Remaining: 139, Tokens: 139.5}
	h := http.Header{}
	Set(h, &d) // The map grows once.
	if n := testing.AllocsPerRun(100, func() {
		clear(h)
		Set(h, &d)
	}); n > 2 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkSet(b *testing.B) {
	d := limit.Decision{Key: key("create-order"), Rule: rule(200, 100, 1), Share: 700_000, Remaining: 139, Tokens: 139.5, ResetAfter: time.Second}
	h := http.Header{}
	b.ReportAllocs()
	for b.Loop() {
		clear(h)
		Set(h, &d)
	}
}

func FuzzWithoutItem(f *testing.F) {
	for _, s := range []string{`"a";q=1, "b";q=2`, `"a`, `"a\"";x="\\", "a"`, `,,"a"`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, line string) {
		once := withoutItem(line, `"a"`)
		if again := withoutItem(once, `"a"`); again != once {
			t.Fatalf("%q leaves %q, then %q", line, once, again)
		}
	})
}
