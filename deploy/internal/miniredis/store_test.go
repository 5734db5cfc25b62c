// Package miniredis_test shows that the demo's store, miniredis, decides as Redis does: its Lua and its commands are written anew,
// and know less.
package miniredis_test

import (
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"pgregory.net/rapid"

	"partidor.dev/partidor/shared/bucket"
	"partidor.dev/partidor/shared/limit"
)

// Random requests against rules of every algorithm, with time passing: the scripts on miniredis and the memory store, which is held
// against a real Redis by its own suite, give the same decisions.
func TestDecidesAsTheMemoryStore(t *testing.T) {
	server := miniredis.RunT(t)
	client := redis.NewClient(&redis.Options{Addr: server.Addr(), MaxRetries: -1})
	t.Cleanup(func() { _ = client.Close() })
	rapid.Check(t, func(rt *rapid.T) {
		server.FlushAll()
		now := time.Date(2026, 11, 30, 23, 59, 57, 123_456_000, time.UTC)
		server.SetTime(now)
		there := bucket.NewRedis(bucket.Options{Client: client, CallTimeout: time.Minute})
		defer there.Close()
		here := bucket.NewMemory(func() time.Time { return now })
		rules := []*limit.Rule{draw(rt, "rule"), draw(rt, "rule of the tenant")}
		for range rapid.IntRange(1, 30).Draw(rt, "steps") {
			step := time.Duration(rapid.Int64Range(0, 3_000_000).Draw(rt, "pause")) * time.Microsecond
			now = now.Add(step)
			server.SetTime(now)
			server.FastForward(step)
			limits := make([]bucket.Limit, rapid.IntRange(1, 2).Draw(rt, "limits"))
			for i := range limits {
				limits[i] = bucket.Limit{
					Key: limit.Key{Tenant: "shop-a", Route: []string{"create-order", limit.TenantRoute}[i]}, Rule: rules[i],
					Base: 700_000, Cost: rapid.Int64Range(0, 4).Draw(rt, "cost"),
				}
			}
			want, err := here.Take(t.Context(), limits)
			if err != nil {
				rt.Fatal(err)
			}
			got, err := there.Take(t.Context(), limits)
			if err != nil {
				rt.Fatal(err)
			}
			if got.Outcome != want.Outcome || got.Key != want.Key || got.Remaining != want.Remaining || got.RetryAfter != want.RetryAfter || got.ResetAfter != want.ResetAfter {
				rt.Fatalf("%+v\nmemory    %+v\nminiredis %+v", limits, want, got)
			}
		}
	})
}

func draw(rt *rapid.T, name string) *limit.Rule {
	r := &limit.Rule{
		Capacity: rapid.Int64Range(1, 50).Draw(rt, name+": capacity"), PeriodSeconds: 1,
		Algorithm: rapid.SampledFrom([]limit.Algorithm{limit.TokenBucket, limit.FixedWindow, limit.SlidingWindowLog, limit.SlidingWindowCounter}).Draw(rt, name),
	}
	switch {
	case r.Algorithm == limit.TokenBucket:
		r.Refill, r.PeriodSeconds = rapid.Int64Range(1, 50).Draw(rt, name+": refill"), rapid.Int64Range(1, 60).Draw(rt, name+": period")
	case r.Algorithm == limit.FixedWindow && rapid.Bool().Draw(rt, name+": calendar"):
		r.Calendar = limit.CalendarDay
	default:
		r.WindowSeconds = rapid.Int64Range(1, 10).Draw(rt, name+": window")
	}
	return r
}
