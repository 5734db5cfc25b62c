package api

import (
	"fmt"
	"net/http"
	"testing"

	"partidor.dev/partidor/rebalancer/internal/ledger"
)

func TestRegionsAreConfigured(t *testing.T) {
	s := newSite(t)
	var one ledger.Diff[ledger.Region]
	if code := s.do(t, "PATCH", "/v1/regions/us", `{"floor": 50000, "domain": "rack-2", "reason": "votes"}`, &one); code != 200 || one.After.Floor != 50_000 || one.After.Domain != "rack-2" {
		t.Fatalf("change: %d %+v", code, one.After)
	}
	seen := one.After.Revision.String()
	if code := s.do(t, "PATCH", "/v1/regions/us", `{"state": "draining"}`, &one, "If-Match", seen); code != 200 || one.After.State != ledger.RegionDraining || one.After.Floor != 50_000 {
		t.Fatalf("drain: %d %+v", code, one.After)
	}
	if code := s.do(t, "PATCH", "/v1/regions/us", `{"floor": 0}`, nil, "If-Match", seen); code != http.StatusConflict {
		t.Errorf("two people at once: %d, want 409", code)
	}
	if code := s.do(t, "PATCH", "/v1/regions/mars", `{"floor": 0}`, nil); code != http.StatusNotFound {
		t.Errorf("unknown region: %d", code)
	}
	var h Page[ledger.Entry]
	if s.do(t, "GET", "/v1/history?kind=region&name=us&size=2", "", &h); len(h.Items) != 2 || h.Items[1].Actor != "olga" || h.Items[1].Reason != "votes" {
		t.Fatalf("history %+v", h)
	}
	for i, want := range []ledger.Region{{State: ledger.RegionActive, Floor: 50_000, Domain: "rack-2"}, {State: ledger.RegionActive}} {
		one = ledger.Diff[ledger.Region]{}
		if code := s.do(t, "POST", fmt.Sprintf("/v1/history/%d/rollback", h.Items[i].ID), `{}`, &one); code != 200 ||
			one.After.State != want.State || one.After.Floor != want.Floor || one.After.Domain != want.Domain {
			t.Errorf("rollback %d: %d %+v, want %+v", i, code, one.After, want)
		}
	}

	var all ledger.Diff[[]ledger.Region]
	body := `{"regions": {"eu": {"base": 500000, "domain": "rack-1"}, "us": {"base": 300000, "floor": 20000}, "ap": {"base": 200000, "domain": "rack-3"}}, "reason": "ap opens"}`
	if code := s.do(t, "PUT", "/v1/regions", body, &all); code != 200 || len(*all.After) != 3 {
		t.Fatalf("configure all: %d %+v", code, all)
	}
	ap, eu, us := (*all.After)[0], (*all.After)[1], (*all.After)[2]
	if ap.Domain != "rack-3" || eu.Base != 500_000 || eu.Domain != "rack-1" || us.Floor != 20_000 || us.Published != 300_000 {
		t.Errorf("regions %+v", *all.After)
	}
	newest := eu.Revision.Max(us.Revision).Max(ap.Revision)
	// The leader publishes the base split step by step; that is nobody's edit.
	if _, err := s.db.Exec(t.Context(), `UPDATE region SET published_share = 500000 WHERE name = 'eu'`); err != nil {
		t.Fatal(err)
	}
	if code := s.do(t, "PUT", "/v1/regions", body, nil, "If-Match", newest.String()); code != 200 {
		t.Errorf("after a step of the leader: %d", code)
	}
	if code := s.do(t, "PATCH", "/v1/regions/eu", `{"domain": ""}`, nil); code != 200 {
		t.Fatal(code)
	}
	if code := s.do(t, "PUT", "/v1/regions", body, nil, "If-Match", newest.String()); code != http.StatusConflict {
		t.Errorf("two people at once: %d, want 409", code)
	}
	s.do(t, "GET", "/v1/history?kind=region&name=eu", "", &h)
	for _, e := range h.Items {
		if want := map[bool]int{true: 409, false: 200}[e.Reason == "ap opens" || e.Actor != "olga"]; e.Operation == "update" {
			if code := s.do(t, "POST", fmt.Sprintf("/v1/history/%d/rollback?dry_run=true", e.ID), `{}`, nil); code != want {
				t.Errorf("rollback of %s by %s: %d, want %d", e.Reason, e.Actor, code, want)
			}
		}
	}
}
