package hot

import (
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"

	"partidor.dev/partidor/gateway/internal/config"
	"partidor.dev/partidor/shared/limit"
)

// The quick test of the job: capacity 2, three requests in a row give 200 200 429 with the right numbers each time.
func TestQuickTest(t *testing.T) {
	f := newFixture(t, nil, func(c *config.Config) {
		c.Routes = []config.Route{{ID: "create-order", Methods: []string{"POST"}, Path: "/orders", Upstream: "echo"}}
	})
	f.admitter.rule = limit.Rule{Capacity: 2, Refill: 1, PeriodSeconds: 1}
	type answer struct {
		Status                                          int
		Remaining, Limit, Policy, RateLimit, RetryAfter string
	}
	var got []answer
	for range 3 {
		resp := f.do(t, "POST", "/orders", nil)
		h := resp.Header
		got = append(got, answer{
			resp.StatusCode, h.Get("X-RateLimit-Remaining"), h.Get("X-RateLimit-Limit"),
			h.Get("RateLimit-Policy"), h.Get("RateLimit"), h.Get("Retry-After"),
		})
	}
	policy := `"create-order";q=2;w=2`
	want := []answer{
		{200, "1", "2", policy, `"create-order";r=1;t=1`, ""},
		{200, "0", "2", policy, `"create-order";r=0;t=1`, ""},
		{429, "0", "2", policy, `"create-order";r=0;t=1`, "1"},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if hits := f.echo.hits.Load(); hits != 2 {
		t.Errorf("upstream got %d requests, want 2", hits)
	}
}

func TestForwardsToUpstream(t *testing.T) {
	f := newFixture(t, nil, nil)
	resp := f.do(t, "GET", "/v1/items/a%20b?x=1", http.Header{
		"X-Api-Key": {"k-t1"}, "X-Tenant-Id": {"t2"}, "X_Tenant_Id": {"t2"}, "X-Forwarded-For": {"1.2.3.4"}, "X-Original-Url": {"/admin"}, "X-Rewrite-Url": {"/admin"},
		"Connection": {"X-Tenant-Id, X-Forwarded-For"},
	})
	if got := bodyOf(t, resp); got != "echo /v1/items/a%20b?x=1" {
		t.Errorf("upstream got %q", got)
	}
	h := f.echo.last.Load().Header
	for name, want := range map[string][]string{
		"X-Tenant-Id": {"t1"}, "X_tenant_id": nil, "X-Forwarded-For": {"127.0.0.1"}, "X-Real-Ip": {"127.0.0.1"},
		"X-Forwarded-Proto": {"http"}, "X-Api-Key": nil, "X-Original-Url": nil, "X-Rewrite-Url": nil,
	} {
		if d := cmp.Diff(want, h[name]); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
}
