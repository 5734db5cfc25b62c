package api

import (
	"net/http"
	"strings"
	"testing"
)

// bodies that the operations which change something take, by operation.
var bodies = map[string]string{
	"PUT /v1/regions":                         `{"regions": {"eu": {"base": 600000}, "us": {"base": 400000}}}`,
	"PATCH /v1/regions/{name}":                `{"domain": "rack-1"}`,
	"PUT /v1/splits/{tenant}/{route}":         `{"shares": {"eu": 500000, "us": 500000}}`,
	"PUT /v1/splits/{tenant}/{route}/pins":    `{"shares": {"eu": 400000}}`,
	"POST /v1/rules":                          `{"rules": [{"tenant": "b", "route": "r", "mode": "block"}]}`,
	"PUT /v1/rules/{tenant}/{route}":          `{"mode": "block"}`,
	"PUT /v1/tenants/{id}":                    `{"plan": "silver"}`,
	"POST /v1/keys":                           `{"tenant": "a"}`,
	"POST /v1/keys/{sha256}/rotate":           `{"grace_seconds": 60}`,
	"PUT /v1/parameters/{name}":               `{"value": "40s"}`,
	"POST /v1/history/{id}/rollback":          `{}`,
	"DELETE /v1/splits/{tenant}/{route}/pins": "", "DELETE /v1/rules/{tenant}/{route}": "", "DELETE /v1/tenants/{id}": "",
	"DELETE /v1/keys/{sha256}": "", "DELETE /v1/parameters/{name}": "",
}

// Two people at once: whatever is changed, a change that was decided on what is no longer there is refused, and nothing of it
// is written. Every endpoint that changes something is asked.
func TestEveryChangeHonoursWhatWasSeen(t *testing.T) {
	s := newSite(t)
	var made NewKey
	for _, step := range [][3]string{
		{"PUT", "/v1/rules/a/r", `{"capacity": 200, "refill_per_second": 100}`},
		{"PUT", "/v1/tenants/a", `{"plan": "gold"}`},
		{"PUT", "/v1/splits/a/r/pins", `{"shares": {"eu": 500000}, "for_seconds": 600}`},
		{"PUT", "/v1/parameters/cycle", `{"value": "30s"}`},
	} {
		if code := s.do(t, step[0], step[1], step[2], nil); code != 200 {
			t.Fatalf("%v: %d", step, code)
		}
	}
	if code := s.do(t, "POST", "/v1/keys", `{"tenant": "a"}`, &made); code != 200 {
		t.Fatal(code)
	}
	var entry string
	if err := s.db.QueryRow(t.Context(), `SELECT max(id)::text FROM history WHERE kind = 'parameter'`).Scan(&entry); err != nil {
		t.Fatal(err)
	}
	count := func() (n int) {
		if err := s.db.QueryRow(t.Context(), `SELECT count(*) FROM history`).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	before := count()
	for _, e := range (&Server{}).endpoints() {
		name := e.method + " " + e.path
		if e.role != Operator || name == "POST /v1/rebalance/run" {
			continue
		}
		body, ok := bodies[name]
		if !ok {
			t.Errorf("%s: nothing shows what two people at once get", name)
			continue
		}
		region := strings.Contains(e.path, "regions")
		path := strings.NewReplacer("{tenant}", "a", "{route}", "r", "{id}/rollback", entry+"/rollback", "{id}", "a", "{sha256}", made.Hash,
			"{name}", map[bool]string{true: "us", false: "cycle"}[region]).Replace(e.path)
		var p Problem
		if code := s.do(t, e.method, path, body, &p, "If-Match", "1.0"); code != http.StatusConflict {
			t.Errorf("%s upon what was never there: %d %+v, want 409", name, code, p)
		}
		if code := s.do(t, e.method, path, body, &p, "If-Match", "nonsense"); code != http.StatusBadRequest || len(p.Errors) != 1 || p.Errors[0].Field != "If-Match" {
			t.Errorf("%s upon nonsense: %d %+v, want 400", name, code, p)
		}
	}
	if after := count(); after != before {
		t.Errorf("%d changes were written all the same", after-before)
	}
}
