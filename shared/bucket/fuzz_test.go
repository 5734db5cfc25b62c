package bucket

import (
	"math"
	"testing"

	"partidor.dev/partidor/shared/limit"
)

// FuzzReply feeds arbitrary lines to the reader of script replies: it must refuse them or give a decision that can be shown.
func FuzzReply(f *testing.F) {
	for _, line := range []string{
		"A 0 19", "R 1 -0.5 s700000 e140", "L 0 3", "A 0 1e-08 g5", "R 0 0.25 w1000 r2000 x l", "A 0 2 v1.9 u5,1,1,700000 s1 e0",
		"A 0 nan", "A 0 inf", "R 9 1", "A 0 1 s-1", "A 0 1 u5,1,1,700000,2,60", "A 0 1e300 s1000000 e1e300", "",
	} {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, line string) {
		limits := []Limit{
			{Key: orders, Rule: &limit.DefaultRule, Base: 700_000, Cost: 1},
			{Key: orders, Rule: &limit.Rule{Capacity: 10, PeriodSeconds: 1, Algorithm: limit.FixedWindow, Calendar: limit.CalendarDay}, Base: limit.Whole, Cost: 3},
		}
		d, _, err := parseReply(line, limits, 0)
		if err != nil {
			return
		}
		if d.Remaining < 0 || d.RetryAfter < 0 || d.ResetAfter < 0 || d.Ahead < 0 || d.Share < 0 || d.Share > limit.Whole ||
			d.Rule == nil || math.IsNaN(d.Tokens) || (d.Outcome == limit.Refused) != (d.RetryAfter > 0) {
			t.Errorf("%q gives %+v", line, d)
		}
	})
}

// FuzzNumbers: what the reader of `rule` fields accepts, it writes back as it was.
func FuzzNumbers(f *testing.F) {
	for _, text := range []string{"200 100 1 700000", "10 0 1 1000000 1 60", "10 0 1 0 1 m", "7 1 60 5 s 4", "0 1 1 1", "1 1 1 1000001", "1 1 1 1 9 9"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		n, err := parseNumbers(text, ' ')
		if err != nil {
			return
		}
		again, err := parseNumbers(string(n.appendText(nil, ' ')), ' ')
		if err != nil || again != n {
			t.Errorf("%q: %+v, again %+v, %v", text, n, again, err)
		}
	})
}

// FuzzSlot: the slot of any key is one of the cluster's, and a tenant's keys share theirs.
func FuzzSlot(f *testing.F) {
	f.Add("shop-a", "create-order", "@tenant")
	f.Add("a}b{c", "{}", ":")
	f.Fuzz(func(t *testing.T, tenant, route, other string) {
		if tenant == "" {
			return
		}
		a, b := keySlot(limit.Key{Tenant: tenant, Route: route}.Redis()), keySlot(limit.Key{Tenant: tenant, Route: other}.Redis())
		if a != b || a < 0 || a >= clusterSlots {
			t.Errorf("slots %d and %d", a, b)
		}
	})
}
