package api

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"partidor.dev/partidor/rebalancer/internal/plan"
	"partidor.dev/partidor/shared/limit"
)

// TestAnswersAreAsDescribed asks every endpoint that looks and holds the answers against the document.
func TestAnswersAreAsDescribed(t *testing.T) {
	s := newSite(t)
	s.collector.demand = []plan.Demand{{Key: limit.Key{Tenant: "a", Route: "r"}, Loads: []plan.Load{{Known: true, Share: 600_000, Offered: 10, Refused: 4}, {}}}}
	for _, step := range [][3]string{
		{"PUT", "/v1/rules/a/r", `{"capacity": 200, "refill_per_second": 100, "max_cost": 40, "expires_at": "2099-01-01T00:00:00Z"}`},
		{"PUT", "/v1/tenants/a", `{"plan": "gold"}`},
		{"PUT", "/v1/splits/a/r/pins", `{"shares": {"eu": 500000}, "for_seconds": 60}`},
		{"PUT", "/v1/parameters/cycle", `{"value": "30s"}`},
	} {
		if code := s.do(t, step[0], step[1], step[2], nil); code != 200 {
			t.Fatalf("%v: %d", step, code)
		}
	}
	var doc struct {
		Paths      map[string]map[string]json.RawMessage
		Components struct{ Schemas map[string]json.RawMessage }
	}
	if code := s.as(t, "", "GET", "/v1/openapi.json", "", &doc); code != 200 {
		t.Fatal(code)
	}
	server := &Server{}
	for _, e := range server.endpoints() {
		if doc.Paths[e.path][strings.ToLower(e.method)] == nil {
			t.Errorf("%s %s is not described", e.method, e.path)
		}
		if e.method != "GET" || e.path == "/v1/openapi.json" {
			continue
		}
		path := strings.NewReplacer("{tenant}", "a", "{route}", "r").Replace(e.path)
		for _, name := range e.query {
			if code := s.do(t, "GET", path+"?"+name+"=", "", nil); code != 200 {
				t.Errorf("GET %s takes no %s: %d", path, name, code)
			}
		}
		var raw json.RawMessage
		if code := s.do(t, "GET", path, "", &raw); code != 200 {
			t.Errorf("GET %s: %d %s", path, code, raw)
			continue
		}
		into := reflect.New(reflect.TypeOf(e.answer)).Interface()
		d := json.NewDecoder(bytes.NewReader(raw))
		d.DisallowUnknownFields()
		if err := d.Decode(into); err != nil {
			t.Errorf("GET %s answers something else than described: %v\n%s", path, err, raw)
		}
	}
	for name, schema := range doc.Components.Schemas {
		if string(schema) == "null" {
			t.Errorf("schema %s is empty", name)
		}
	}
}

func TestExplain(t *testing.T) {
	s := newSite(t)
	key := limit.Key{Tenant: "a", Route: "r"}
	s.do(t, "PUT", "/v1/rules/@gold/*", `{"capacity": 200, "refill_per_second": 100}`, nil)
	s.do(t, "PUT", "/v1/tenants/a", `{"plan": "gold"}`, nil)
	s.collector.demand = []plan.Demand{{Key: key, Loads: []plan.Load{{Known: true, Share: 700_000, Offered: 10}, {Known: true, Share: 300_000, Offered: 60, Refused: 30}}}}
	var x Explanation
	if code := s.do(t, "GET", "/v1/explain/a/r", "", &x); code != 200 {
		t.Fatal(code)
	}
	if x.RuleFrom != "a rule of the tenant's plan gold for all routes" || x.Regions[1].Rate != 30 || x.Regions[0].Capacity != 140 {
		t.Errorf("explanation %+v", x)
	}
	if len(x.Findings) != 1 || !strings.HasPrefix(x.Findings[0], "us refuses 30 of 60 tokens/s with 30.0 % of the limit while other regions leave 60/s unused") {
		t.Errorf("findings %q", x.Findings)
	}
	var p Preview
	if code := s.do(t, "POST", "/v1/rebalance/plan", `{"with": {"floor": "30%", "step": "100%"}}`, &p); code != 200 || p.Keys != 1 {
		t.Errorf("preview: %d %+v", code, p)
	}
	if code := s.do(t, "GET", "/v1/explain/nobody/new", "", &x); code != 200 || x.RuleFrom != "the configured default: no rule matches" {
		t.Errorf("a key that nobody uses: %d %+v", code, x)
	}
}
