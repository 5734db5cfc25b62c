package app_test

import (
	"encoding/json"
	"net/http"
	"testing"
)

func TestExplain(t *testing.T) {
	s := newSet(t)
	s.shop(t, "shop-a")
	s.exec(t, `UPDATE tenant SET plan = 'gold'`)
	s.rule(t, "shop-a", 9, 1, 1)
	s.exec(t, `DELETE FROM rate_limit_rule`)
	s.rule(t, "@gold", 7, 1, 3600)
	s.exec(t, `INSERT INTO rate_limit_rule (tenant_id, route_id, capacity, refill_per_second) VALUES ('*', '@tenant', 50, 5)`)
	g := start(t, s.config)
	g.post("shop-a")
	resp, err := http.Get(g.Admin + "/explain?tenant=shop-a&route=create-order")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	type limit struct {
		Scope    string
		Rule     struct{ Capacity int64 }
		Steps    []struct{ Scope, Found string }
		RedisKey string            `json:"redis_key"`
		Bucket   map[string]string `json:"bucket"`
	}
	var e struct {
		Plan        string
		Limit       limit
		TenantLimit limit `json:"tenant_limit"`
	}
	if err := json.NewDecoder(resp.Body).Decode(&e); err != nil {
		t.Fatal(err)
	}
	if e.Plan != "gold" || e.Limit.Scope != "plan/route" || e.Limit.Rule.Capacity != 7 || e.Limit.Bucket["tokens"] != "6" {
		t.Errorf("explanation %+v", e)
	}
	if s := e.Limit.Steps; len(s) != 3 || s[0].Found != "deleted" || s[1].Found != "nothing" || s[2].Found != "rule" {
		t.Errorf("steps %+v, want the deleted rule, no wildcard, the plan's rule", s)
	}
	if e.TenantLimit.Rule.Capacity != 50 || e.TenantLimit.RedisKey != "rl:{shop-a}:@tenant" {
		t.Errorf("the tenant's limit %+v", e.TenantLimit)
	}
	if resp, err := http.Get(g.Admin + "/explain?tenant=shop-a"); err != nil || resp.StatusCode != http.StatusBadRequest {
		t.Errorf("without a route: %v", err)
	}
}
