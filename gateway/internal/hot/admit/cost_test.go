package admit

import (
	"testing"
	"testing/synctest"
	"time"

	"partidor.dev/partidor/gateway/internal/snapshot"
	"partidor.dev/partidor/shared/limit"
)

// withRegions divides the limits: eu, where the test stands, has a tenth.
func withRegions(t *testing.T) func(*snapshot.Builder) {
	return func(b *snapshot.Builder) {
		err := b.SetRegions([]snapshot.Region{{Name: "eu", Base: 100_000}, {Name: "us", Base: 900_000}}, limit.Revision{Number: 2})
		if err != nil {
			t.Fatal(err)
		}
	}
}

func maxCost(n int64) func(*limit.Rule) { return func(r *limit.Rule) { r.MaxCost = n } }

// A request dearer than the rule declares any, and one that its region's slice can never hold where no share moves for it, are
// too large: nobody is told to come back who would be refused again. Whatever waiting, or a move of share, can admit is refused.
func TestTooLargeRequests(t *testing.T) {
	for _, c := range []struct {
		name           string
		capacity, rate int64
		declared, cost int64
		want           limit.Outcome
		source         limit.Source
	}{
		{"as dear as declared", 1000, 10, 40, 40, limit.Allowed, limit.SourceRedis},
		{"dearer than declared", 1000, 10, 40, 41, limit.TooLarge, limit.SourceRule},
		{"above the capacity, nothing declared", 1000, 10, 0, 1001, limit.TooLarge, limit.SourceRedis},
		{"above the slice, shares follow the demand", 1000, 10, 0, 101, limit.Refused, limit.SourceRedis},
		{"above the slice, shares stay", 1000, 100_000, 0, 101, limit.TooLarge, limit.SourceRedis},
		{"above the slice, shares stay but for what is declared", 1000, 100_000, 101, 101, limit.Refused, limit.SourceRedis},
		{"as large as the slice, shares stay", 1000, 100_000, 0, 100, limit.Allowed, limit.SourceRedis},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				usage := newCounts()
				h := rules(t, withRegions(t), set("t1", "items", c.capacity, c.rate, maxCost(c.declared)))
				a := newAdmitter(t, Options{Rules: h, Store: newFakeStore(), Counter: usage})
				key := limit.Key{Tenant: "t1", Route: "items"}
				for range 2 { // the second time from memory, where a refusal is remembered
					d := a.Admit(t.Context(), time.Now(), Request{Tenant: "t1", Route: "items", Cost: c.cost})
					if d.Outcome != c.want || d.Key != key || (d.RetryAfter > 0) != (c.want == limit.Refused) {
						t.Fatalf("%v by %v, retry after %v of %v; want %v", d.Outcome, d.Source, d.RetryAfter, d.Key, c.want)
					}
					if d.Source != c.source && d.Source != limit.SourceDeniedCache {
						t.Errorf("decided by %v, want %v", d.Source, c.source)
					}
					time.Sleep(10 * time.Second) // full again
				}
				if c.want != limit.Allowed && usage.refused[key] != 2*c.cost {
					t.Errorf("%d tokens counted as refused, want %d", usage.refused[key], 2*c.cost)
				}
			})
		})
	}
}

// The tenant's limit counts too, and a rule that only counts refuses nobody.
func TestTooLargeForTheTenant(t *testing.T) {
	h := rules(t, set("t1", "items", 1000, 10), set("t1", limit.TenantRoute, 100, 10, maxCost(5)))
	a := newAdmitter(t, Options{Rules: h, Store: newFakeStore()})
	if d := a.Admit(t.Context(), time.Now(), Request{Tenant: "t1", Route: "items", Cost: 6}); d.Outcome != limit.TooLarge || d.Key.Route != limit.TenantRoute {
		t.Errorf("%v by the limit of %s", d.Outcome, d.Key.Route)
	}
	edit(t, h, set("t1", limit.TenantRoute, 100, 10, maxCost(5), mode(limit.Shadow), revision(3)))
	if d := a.Admit(t.Context(), time.Now(), Request{Tenant: "t1", Route: "items", Cost: 6}); d.Outcome != limit.Allowed {
		t.Errorf("%v by a rule in shadow mode", d.Outcome)
	}
}
