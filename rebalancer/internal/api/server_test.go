package api

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"partidor.dev/partidor/rebalancer/internal/board"
	"partidor.dev/partidor/rebalancer/internal/ledger"
	"partidor.dev/partidor/rebalancer/internal/plan"
	"partidor.dev/partidor/shared/limit"
)

func TestAccess(t *testing.T) {
	s := newSite(t)
	for _, c := range []struct {
		token, method, path string
		want                int
	}{
		{"", "GET", "/v1/rules", http.StatusUnauthorized},
		{"wrong", "GET", "/v1/rules", http.StatusUnauthorized},
		{viewerToken, "GET", "/v1/rules", http.StatusOK},
		{viewerToken, "DELETE", "/v1/rules/a/r", http.StatusForbidden},
		{operatorToken, "DELETE", "/v1/rules/a/r", http.StatusNotFound},
		{"", "GET", "/v1/nothing", http.StatusNotFound},
	} {
		if got := s.as(t, c.token, c.method, c.path, "", nil); got != c.want {
			t.Errorf("%s %s with token %q: %d, want %d", c.method, c.path, c.token, got, c.want)
		}
	}
	if got := s.do(t, "POST", "/v1/rebalance/run", "", nil, "Sec-Fetch-Site", "cross-site"); got != http.StatusForbidden {
		t.Errorf("a foreign page could change something: %d", got)
	}
}

// TestBadInput (cases limits 44, 46, 47, 53): every refusal is a 4xx that names the field, and nothing is half applied.
func TestBadInput(t *testing.T) {
	s := newSite(t)
	for _, c := range []struct{ name, method, path, body, field string }{
		{"unknown field", "PUT", "/v1/rules/a/r", `{"capacty": 3}`, "capacty"},
		{"wrong type", "PUT", "/v1/rules/a/r", `{"capacity": "3"}`, "capacity"},
		{"fraction", "PUT", "/v1/rules/a/r", `{"capacity": 1.5}`, "capacity"},
		{"burst 0", "PUT", "/v1/rules/a/r", `{"capacity": 0, "refill_per_second": 1}`, "capacity"},
		{"capacity -1", "PUT", "/v1/rules/a/r", `{"capacity": -1, "refill_per_second": 1}`, "capacity"},
		{"capacity null", "PUT", "/v1/rules/a/r", `{"capacity": null, "refill_per_second": 1}`, "capacity"},
		{"rate -5", "PUT", "/v1/rules/a/r", `{"capacity": 1, "refill_per_second": -5}`, "refill_per_second"},
		{"period 60s", "PUT", "/v1/rules/a/r", `{"capacity": 1, "refill_per_second": 1, "refill_period_seconds": "60s"}`, "refill_period_seconds"},
		{"period 0", "PUT", "/v1/rules/a/r", `{"capacity": 1, "refill_per_second": 1, "refill_period_seconds": 0}`, "refill_period_seconds"},
		{"more refill than a column holds", "PUT", "/v1/rules/a/r", `{"capacity": 1, "refill_per_second": 5000000000, "refill_period_seconds": 60}`, "refill_per_second"},
		{"rate 2e9", "PUT", "/v1/rules/a/r", `{"capacity": 1, "refill_per_second": 2000000000}`, "refill_per_second"},
		{"rate 1e30", "PUT", "/v1/rules/a/r", `{"capacity": 1, "refill_per_second": 1e30}`, "refill_per_second"},
		{"capacity 2^63", "PUT", "/v1/rules/a/r", `{"capacity": 9223372036854775808, "refill_per_second": 1}`, "capacity"},
		{"NaN", "PUT", "/v1/rules/a/r", `{"capacity": NaN}`, "body"},
		{"no end", "PUT", "/v1/rules/a/r", `{"mode": "block", "expires_at": "0001-01-01T00:00:00Z"}`, "expires_at"},
		{"no time", "PUT", "/v1/rules/a/r", `{"mode": "block", "expires_at": "tomorrow"}`, "expires_at"},
		{"largest cost above the capacity", "PUT", "/v1/rules/a/r", `{"capacity": 100, "refill_per_second": 1, "max_cost": 101}`, "max_cost"},
		{"small shards", "PUT", "/v1/rules/a/r", `{"capacity": 100, "refill_per_second": 1, "shards": 4}`, "shards"},
		{"NUL in a reason", "PUT", "/v1/rules/a/r", `{"mode": "block", "reason": "a\u0000b"}`, "value"},
		{"NUL in a name", "DELETE", "/v1/rules/a%00/r", "", "value"},
		{"share NaN%", "PUT", "/v1/parameters/floor", `{"value": "NaN%"}`, "floor"},
		{"share Inf%", "PUT", "/v1/parameters/spare_by_need", `{"value": "Inf%"}`, "spare_by_need"},
		{"negative share", "PUT", "/v1/parameters/step", `{"value": "-5%"}`, "step"},
		{"share of 101 %", "PUT", "/v1/parameters/step", `{"value": "101%"}`, "step"},
		{"headroom 1e999", "PUT", "/v1/parameters/headroom", `{"value": 1e999}`, "headroom"},
		{"headroom null", "PUT", "/v1/parameters/headroom", `{"value": null}`, "headroom"},
		{"pin below 0", "PUT", "/v1/splits/a/r/pins", `{"shares": {"eu": -1}}`, "shares.eu"},
		{"bad word", "PUT", "/v1/rules/a/r", `{"mode": "of"}`, "mode"},
		{"two values", "PUT", "/v1/rules/a/r", `{"mode": "block"} {}`, "body"},
		{"other rule", "PUT", "/v1/rules/a/r", `{"tenant": "b", "mode": "block"}`, "tenant"},
		{"long name", "PUT", "/v1/rules/" + strings.Repeat("x", 65) + "/r", `{"mode": "block"}`, "tenant"},
		{"misspelt dry run", "PUT", "/v1/rules/a/r?dry-run=true", `{"mode": "block"}`, "dry-run"},
		{"bad condition", "PUT", "/v1/rules/a/r", `{"mode": "block", "window_seconds": 5}`, "window"},
		{"twice in a set", "POST", "/v1/rules", `{"rules": [{"tenant": "a", "route": "r", "mode": "block"}, {"tenant": "a", "route": "r", "mode": "unlimited"}]}`, "rules[1].route"},
		{"empty prune", "POST", "/v1/rules", `{"rules": [], "prune": true}`, "rules"},
		{"unknown region", "PUT", "/v1/splits/a/r/pins", `{"shares": {"mars": 100000}}`, "shares.mars"},
		{"more than all", "PUT", "/v1/splits/a/r/pins", `{"shares": {"eu": 800000, "us": 300000}}`, "shares"},
		{"split that does not add up", "PUT", "/v1/splits/a/r", `{"shares": {"eu": 800000, "us": 100000}}`, "shares"},
		{"expired pin", "PUT", "/v1/splits/a/r/pins", `{"shares": {"eu": 800000}, "expires_at": "2020-01-01T00:00:00Z"}`, "expires_at"},
		{"pin of a wildcard", "PUT", "/v1/splits/*/r/pins", `{"shares": {"eu": 800000}}`, "tenant"},
		{"base that does not add up", "PUT", "/v1/regions", `{"regions": {"eu": {"base": 800000}, "us": {"base": 100000}}}`, "regions"},
		{"region left out", "PUT", "/v1/regions", `{"regions": {"eu": {"base": 1000000}}}`, "regions"},
		{"region without a base", "PUT", "/v1/regions", `{"regions": {"eu": {"base": 1000000}, "us": {}}}`, "regions.us.base"},
		{"region name", "PUT", "/v1/regions", `{"regions": {"eu": {"base": 700000}, "u.s": {"base": 300000}}}`, "regions.u.s"},
		{"no regions", "PUT", "/v1/regions", `{"regions": {}}`, "regions"},
		{"floor above the new base", "PUT", "/v1/regions", `{"regions": {"eu": {"base": 900000}, "us": {"base": 100000, "floor": 200000}}}`, "regions.us.floor"},
		{"region state", "PATCH", "/v1/regions/eu", `{"state": "gone"}`, "state"},
		{"last region", "PUT", "/v1/regions", `{"regions": {"eu": {"base": 700000, "state": "dead"}, "us": {"base": 300000, "state": "draining"}}}`, "regions.us.state"},
		{"floor above the base", "PATCH", "/v1/regions/us", `{"floor": 300001}`, "floor"},
		{"negative floor", "PATCH", "/v1/regions/us", `{"floor": -1}`, "floor"},
		{"floor in percent", "PATCH", "/v1/regions/us", `{"floor": "5%"}`, "floor"},
		{"long domain", "PATCH", "/v1/regions/us", `{"domain": "` + strings.Repeat("x", 65) + `"}`, "domain"},
		{"base of one region", "PATCH", "/v1/regions/us", `{"base": 500000}`, "base"},
		{"absurd parameter", "PUT", "/v1/parameters/cycle", `{"value": "1ns"}`, "cycle"},
		{"parameter type", "PUT", "/v1/parameters/floor", `{"value": true}`, "floor"},
		{"page size", "GET", "/v1/rules?size=0", "", "size"},
		{"unknown filter", "GET", "/v1/rules?tenat=a", "", "tenat"},
		{"foreign page", "GET", "/v1/rules?page=%21", "", "page"},
		{"tenant of a key", "POST", "/v1/keys", `{"tenant": "nobody"}`, "tenant"},
		{"digest", "DELETE", "/v1/keys/abc", "", "sha256"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var p Problem
			code := s.do(t, c.method, c.path, c.body, &p)
			if code < 400 || code > 499 || len(p.Errors) == 0 || p.Errors[0].Field != c.field {
				t.Errorf("%d %+v, want a 4xx about %s", code, p, c.field)
			}
		})
	}
	var n int
	if err := s.db.QueryRow(t.Context(), `SELECT (SELECT count(*) FROM rate_limit_rule) + (SELECT count(*) FROM split) + (SELECT count(*) FROM parameter)`).Scan(&n); err != nil || n != 0 {
		t.Errorf("%d rows written by refused requests, %v", n, err)
	}
}

func TestRulesChangeHistoryAndRollback(t *testing.T) {
	s := newSite(t)
	var d ledger.Diff[ledger.Rule]
	if code := s.do(t, "PUT", "/v1/rules/shop-a/create-order?dry_run=true", `{"capacity": 200, "refill_per_second": 100}`, &d); code != 200 || d.After == nil {
		t.Fatalf("dry run: %d %+v", code, d)
	}
	if code := s.do(t, "GET", "/v1/rules/shop-a/create-order", "", nil); code != 404 {
		t.Fatalf("the dry run wrote: %d", code)
	}
	if code := s.do(t, "PUT", "/v1/rules/shop-a/create-order", `{"capacity": 200, "refill_per_second": 100, "reason": "launch"}`, &d, "If-None-Match", "*"); code != 200 || d.Before != nil {
		t.Fatalf("create: %d %+v", code, d)
	}
	seen := d.After.Revision.String()
	if code := s.do(t, "PUT", "/v1/rules/shop-a/create-order", `{"capacity": 300, "refill_per_second": 100}`, &d, "If-Match", seen); code != 200 {
		t.Fatalf("change: %d", code)
	}
	if code := s.do(t, "PUT", "/v1/rules/shop-a/create-order", `{"capacity": 400, "refill_per_second": 100}`, nil, "If-Match", seen); code != 409 {
		t.Errorf("two people at once: %d, want 409", code)
	}
	if code := s.do(t, "PUT", "/v1/rules/shop-a/create-order", `{"capacity": 400, "refill_per_second": 100}`, nil, "If-None-Match", "*"); code != 409 {
		t.Errorf("creating what exists: %d, want 409", code)
	}
	if code := s.do(t, "DELETE", "/v1/rules/shop-a/create-order?reason=gone", "", nil); code != 200 {
		t.Fatalf("delete: %d", code)
	}
	var h Page[ledger.Entry]
	if code := s.do(t, "GET", "/v1/history?kind=rule&tenant=shop-a", "", &h); code != 200 || len(h.Items) != 3 {
		t.Fatalf("history: %d %+v", code, h)
	}
	for i, want := range []string{"delete olga gone", "update olga ", "insert olga launch"} {
		if got := h.Items[i].Operation + " " + h.Items[i].Actor + " " + h.Items[i].Reason; got != want {
			t.Errorf("entry %d: %q, want %q", i, got, want)
		}
	}
	// The deletion undone, then the raise: step by step back to the launch.
	for i, want := range []int64{300, 200} {
		if code := s.do(t, "POST", fmt.Sprintf("/v1/history/%d/rollback", h.Items[i].ID), `{}`, nil); code != 200 {
			t.Fatalf("rollback: %d", code)
		}
		var rule ledger.Rule
		if s.do(t, "GET", "/v1/rules/shop-a/create-order", "", &rule); rule.Capacity != want {
			t.Errorf("capacity %d after rollback %d, want %d", rule.Capacity, i, want)
		}
	}
}

func TestApplyIsAllOrNothing(t *testing.T) {
	s := newSite(t)
	rules := make([]string, 10_000)
	for i := range rules {
		rules[i] = fmt.Sprintf(`{"tenant": "t%d", "route": "r", "capacity": 10, "refill_per_second": 1}`, i)
	}
	set := func() string { return `{"rules": [` + strings.Join(rules, ",") + `], "prune": true}` }
	good := rules[7311]
	rules[7311] = `{"tenant": "t7311", "route": "r", "capacity": 0, "refill_per_second": 1}`
	var p Problem
	if code := s.do(t, "POST", "/v1/rules", set(), &p); code != 400 || !strings.HasPrefix(p.Errors[0].Field, "rules[7311]") {
		t.Errorf("one bad rule of 10,000: %d %+v", code, p)
	}
	rules[7311] = good
	var plan ledger.RulePlan
	if code := s.do(t, "POST", "/v1/rules", set(), &plan); code != 200 || len(plan.Create) != 10_000 {
		t.Fatalf("apply: %d, %d created", code, len(plan.Create))
	}
	if code := s.do(t, "POST", "/v1/rules", set(), &plan); code != 200 || plan.Unchanged != 10_000 {
		t.Errorf("apply again: %d, %d unchanged", code, plan.Unchanged)
	}
	rules[0] = `{"tenant": "t0", "route": "r", "capacity": 11, "refill_per_second": 1}`
	rules = rules[:9_999]
	if code := s.do(t, "POST", "/v1/rules?dry_run=true", set(), &plan); code != 200 || len(plan.Update) != 1 || len(plan.Delete) != 1 {
		t.Errorf("plan: %d, %d updated, %d deleted", code, len(plan.Update), len(plan.Delete))
	}
	var n int
	if err := s.db.QueryRow(t.Context(), `SELECT count(DISTINCT revision_number) FROM rate_limit_rule`).Scan(&n); err != nil || n != 1 {
		t.Errorf("a set of rules has %d revisions, want 1", n)
	}
	// Pages cover everything once.
	seen := map[string]bool{}
	for page, pages := "", 0; ; pages++ {
		var list Page[ledger.Rule]
		s.do(t, "GET", "/v1/rules?size=1000&page="+page, "", &list)
		for _, r := range list.Items {
			seen[r.Tenant] = true
		}
		if page = list.Next; page == "" {
			if pages != 9 || len(seen) != 10_000 {
				t.Errorf("%d rules on %d pages", len(seen), pages+1)
			}
			break
		}
	}
}

func TestKeysAreShownOnceAndEnd(t *testing.T) {
	s := newSite(t)
	if code := s.do(t, "PUT", "/v1/tenants/shop-a", `{"plan": "gold"}`, nil); code != 200 {
		t.Fatal(code)
	}
	var made, next NewKey
	if code := s.do(t, "POST", "/v1/keys", `{"tenant": "shop-a", "label": "till"}`, &made); code != 200 || !strings.HasPrefix(made.Key, "ptdr_") {
		t.Fatalf("create: %d %+v", code, made)
	}
	if got := sha256.Sum256([]byte(made.Key)); fmt.Sprintf("%x", got) != made.Hash {
		t.Error("the digest is of another key")
	}
	if code := s.do(t, "POST", "/v1/keys/"+made.Hash+"/rotate", `{"grace_seconds": 3600}`, &next); code != 200 || next.Key == made.Key || next.Label != "till" {
		t.Fatalf("rotate: %d %+v", code, next)
	}
	if code := s.do(t, "DELETE", "/v1/keys/"+next.Hash, "", nil); code != 200 {
		t.Fatal(code)
	}
	var list Page[ledger.APIKey]
	s.do(t, "GET", "/v1/keys?tenant=shop-a", "", &list)
	for _, k := range list.Items {
		switch {
		case k.Hash == made.Hash && (!k.Enabled || k.ExpiresAt == nil):
			t.Errorf("the rotated key %+v does not end", k)
		case k.Hash == next.Hash && k.Enabled:
			t.Error("the revoked key is enabled")
		}
	}
	data, _ := json.Marshal(list)
	if bytes.Contains(data, []byte("ptdr_")) || len(list.Items) != 2 {
		t.Errorf("list of keys %s", data)
	}
}

func TestPinsAndSplits(t *testing.T) {
	s := newSite(t)
	s.collector.demand = []plan.Demand{
		{Key: limit.Key{Tenant: "a", Route: "r"}, Loads: []plan.Load{{Known: true, Share: 600_000, Offered: 10, Refused: 4}, {Known: true, Share: 400_000, Offered: 5}}},
		{Key: limit.Key{Tenant: "b", Route: "r"}, Loads: []plan.Load{{Known: true, Share: 700_000, Offered: 10, Refused: 8}, {Known: true, Offered: 5}}}}
	var d ledger.Diff[ledger.Pins]
	if code := s.do(t, "PUT", "/v1/splits/a/r/pins", `{"shares": {"eu": 500000}, "for_seconds": 600, "reason": "sale"}`, &d); code != 200 || d.After.Shares["eu"] != 500_000 {
		t.Fatalf("pin: %d %+v", code, d)
	}
	var page Page[board.Key]
	if code := s.do(t, "GET", "/v1/splits?tenant=a&route=r", "", &page); code != 200 || len(page.Items) != 1 {
		t.Fatalf("splits: %d %+v", code, page)
	}
	eu := page.Items[0].Regions[0]
	if eu.Share != 600_000 || eu.Pin == nil || *eu.Pin != 500_000 || eu.Refused != 4 || !eu.Reported || time.Until(eu.PinEnds) > 10*time.Minute {
		t.Errorf("eu %+v", eu)
	}
	if code := s.do(t, "GET", "/v1/splits?order=pressure", "", &page); code != 200 || len(page.Items) != 2 || page.Items[0].Tenant != "b" {
		t.Errorf("by pressure: %d %+v", code, page)
	}
	if code := s.do(t, "PUT", "/v1/splits/a/r", `{"shares": {"eu": 200000, "us": 800000}}`, &d); code != 200 || time.Until(d.After.Expires) > holdSet {
		t.Errorf("set: %d %+v", code, d)
	}
	d = ledger.Diff[ledger.Pins]{}
	if code := s.do(t, "DELETE", "/v1/splits/a/r/pins", "", &d); code != 200 || d.After != nil || d.Before.Shares["us"] != 800_000 {
		t.Errorf("unpin: %d %+v", code, d)
	}
	var h Page[ledger.Entry]
	if s.do(t, "GET", "/v1/history?kind=pin", "", &h); len(h.Items) != 3 || h.Items[2].Operation != "pin" || h.Items[2].Reason != "sale" {
		t.Errorf("history %+v", h)
	}
	if code := s.do(t, "POST", fmt.Sprintf("/v1/history/%d/rollback", h.Items[0].ID), `{}`, &d); code != 200 || d.After.Shares["us"] != 800_000 {
		t.Errorf("rollback of the unpinning: %d %+v", code, d)
	}
}

func TestParametersAreCanonical(t *testing.T) {
	s := newSite(t)
	if code := s.do(t, "PUT", "/v1/parameters/floor", `{"value": "30%", "reason": "storm"}`, nil); code != 200 {
		t.Fatal(code)
	}
	var raw string
	if err := s.db.QueryRow(t.Context(), `SELECT value::text FROM parameter WHERE name = 'floor'`).Scan(&raw); err != nil || raw != "0.3" {
		t.Errorf("the ledger keeps %s, %v; gateways read a number", raw, err)
	}
	var page Page[ParameterView]
	s.do(t, "GET", "/v1/parameters", "", &page)
	for _, p := range page.Items {
		if p.Name == "floor" && (string(p.Value) != "0.3" || string(p.Default) != "0.05" || p.UpdatedBy != "olga") {
			t.Errorf("floor %+v", p)
		}
	}
	if code := s.do(t, "DELETE", "/v1/parameters/floor", "", nil); code != 200 {
		t.Error(code)
	}
}
