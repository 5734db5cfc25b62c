package api

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
)

// schema is what the test reads of the OpenAPI document.
type schema struct {
	Ref        string `json:"$ref"`
	Type       string
	Format     string
	Properties map[string]schema
	Required   []string
	Items      *schema
}

type operation struct {
	Parameters  []struct{ Name, In string }
	RequestBody *struct {
		Content map[string]struct{ Schema schema }
	}
}

type openDocument struct {
	Paths      map[string]map[string]operation
	Components struct{ Schemas map[string]schema }
}

func (d *openDocument) resolve(s schema) schema {
	if s.Ref != "" {
		return d.Components.Schemas[strings.TrimPrefix(s.Ref, "#/components/schemas/")]
	}
	return s
}

// writing are the operations that change something, by method and path; and the one that plans.
func (d *openDocument) writing() map[string]operation {
	all := map[string]operation{}
	for path, methods := range d.Paths {
		for method, op := range methods {
			if method != "get" {
				all[strings.ToUpper(method)+" "+path] = op
			}
		}
	}
	return all
}

// unfit are values that a field of a type cannot have; "" where every value may.
func unfit(s schema) []string {
	switch s.Type {
	case "string":
		if s.Format == "date-time" {
			return []string{`7`, `"tomorrow"`, `{}`}
		}
		return []string{`7`, `true`, `["x"]`}
	case "integer":
		return []string{`"7x"`, `1.5`, `1e30`, `true`, `-1e30`}
	case "number":
		return []string{`"x"`, `true`}
	case "boolean":
		return []string{`"yes"`, `1`}
	case "array":
		return []string{`{}`, `"x"`, `7`}
	case "object":
		return []string{`[]`, `"x"`, `7`}
	}
	return nil
}

// Whatever is wrong with a request to any operation of the document that changes something is a 4xx that names the field, and changes
// nothing. An operation that is added is asked by itself.
func TestEveryOperationRefusesBadInput(t *testing.T) {
	s := newSite(t)
	for _, step := range [][3]string{
		{"PUT", "/v1/rules/a/r", `{"capacity": 200, "refill_per_second": 100}`},
		{"PUT", "/v1/tenants/a", `{"plan": "gold"}`},
	} {
		if code := s.do(t, step[0], step[1], step[2], nil); code != http.StatusOK {
			t.Fatalf("%v: %d", step, code)
		}
	}
	var made NewKey
	if code := s.do(t, "POST", "/v1/keys", `{"tenant": "a"}`, &made); code != http.StatusOK {
		t.Fatal(code)
	}
	var doc openDocument
	s.do(t, "GET", "/v1/openapi.json", "", &doc)
	before := s.everything(t)
	for name, op := range doc.writing() {
		t.Run(name, func(t *testing.T) {
			method, template, _ := strings.Cut(name, " ")
			path := strings.NewReplacer("{tenant}", "a", "{route}", "r", "{id}/rollback", "1/rollback", "{id}", "a", "{sha256}", made.Hash,
				"regions/{name}", "regions/us", "{name}", "cycle").Replace(template)
			refused := func(path, body, field string, header ...string) {
				t.Helper()
				var p Problem
				code := s.do(t, method, path, body, &p, header...)
				if code < 400 || code > 499 || len(p.Errors) == 0 || p.Errors[0].Field != field && !strings.HasPrefix(p.Errors[0].Field, field+".") {
					t.Errorf("%s %s %.200s: %d %+v, want a 4xx about %s", method, path, body, code, p, field)
				}
			}
			// The query.
			good := bodies[name]
			refused(path+"?nonsense=1", good, "nonsense")
			refused(path+"?dry-run=true", good, "dry-run")
			if slices.ContainsFunc(op.Parameters, func(p struct{ Name, In string }) bool { return p.Name == "dry_run" }) {
				refused(path+"?dry_run=maybe", good, "dry_run")
				refused(path+"?dry_run=true&dry_run=false", good, "dry_run")
				refused(path, good, "If-Match", "If-Match", "W/1")
			} else {
				refused(path+"?dry_run=true", good, "dry_run")
			}
			// The names in the path. What does not exist is not found.
			for _, bad := range []string{"%00", "%ff", strings.Repeat("x", 65)} {
				for _, in := range inPath.FindAllString(template, -1) {
					odd := strings.NewReplacer(in, bad, "{tenant}", "a", "{route}", "r", "{id}", "1", "{sha256}", made.Hash, "{name}", "us").Replace(template)
					var p Problem
					if code := s.do(t, method, odd, good, &p); code < 400 || code > 499 {
						t.Errorf("%s %s: %d %+v, want a 4xx", method, odd, code, p)
					}
				}
			}
			if op.RequestBody == nil {
				refused(path, `{}`, "body")
				refused(path, `{"reason": "somebody means this"}`, "body")
				return
			}
			// The body as a whole.
			for _, body := range []string{"", "null", "[]", `"x"`, "7", "{", "{} {}", "not JSON", `{"a": NaN}`} {
				refused(path, body, "body")
			}
			var p Problem
			if code := s.do(t, method, path, "x=1", &p, "Content-Type", "application/x-www-form-urlencoded"); code != http.StatusUnsupportedMediaType {
				t.Errorf("a form: %d %+v", code, p)
			}
			if name != "POST /v1/rules" {
				if code := s.do(t, method, path, `{"reason": "`+strings.Repeat("x", maxBody)+`"}`, &p); code != http.StatusRequestEntityTooLarge {
					t.Errorf("a megabyte: %d %+v", code, p)
				}
			}
			// Its fields.
			body := doc.resolve(op.RequestBody.Content["application/json"].Schema)
			refused(path, with(t, good, "nonsense", `1`), "nonsense")
			for field, of := range body.Properties {
				of = doc.resolve(of)
				for _, value := range unfit(of) {
					refused(path, with(t, good, field, value), field)
				}
				if of.Type == "array" && of.Items != nil {
					refused(path, with(t, good, field, `[{"nonsense": 1}]`), "nonsense")
					refused(path, with(t, good, field, `[null, 7]`), field)
				}
				if upper := strings.ToUpper(field); field != upper {
					refused(path, with(t, good, upper, `1`), upper)
				}
			}
			for _, field := range body.Required {
				if !strings.Contains(template, "{"+field+"}") {
					refused(path, with(t, good, field, ""), field)
					if doc.resolve(body.Properties[field]).Type != "" { // what may be anything may be null
						refused(path, with(t, good, field, "null"), field)
					}
				}
			}
			if _, ok := body.Properties["reason"]; ok {
				refused(path, with(t, good, "reason", fmt.Sprintf("%q", strings.Repeat("x", maxReason+1))), "reason")
			}
		})
	}
	for _, token := range []string{"", "wrong", viewerToken} {
		for name := range doc.writing() {
			method, path, _ := strings.Cut(name, " ")
			if name == "POST /v1/rebalance/plan" {
				continue // changes nothing
			}
			if code := s.as(t, token, method, inPath.ReplaceAllString(path, "a"), bodies[name], nil); code != http.StatusUnauthorized && code != http.StatusForbidden {
				t.Errorf("%s with token %q: %d", name, token, code)
			}
		}
	}
	if after := s.everything(t); !maps.Equal(before, after) {
		t.Errorf("refused requests have changed something:\n%v\n%v", before, after)
	}
}

// with is body with one field set to value, or without it where value is "".
func with(t *testing.T, body, field, value string) string {
	t.Helper()
	fields := map[string]json.RawMessage{}
	if body != "" {
		if err := json.Unmarshal([]byte(body), &fields); err != nil {
			t.Fatal(err)
		}
	}
	if fields[field] = json.RawMessage(value); value == "" {
		delete(fields, field)
	}
	out, err := json.Marshal(fields)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// everything that the ledger holds, by table: how many rows, and a digest of them.
func (s *site) everything(t *testing.T) map[string]string {
	t.Helper()
	rows, err := s.db.Query(t.Context(), `SELECT table_name FROM information_schema.tables WHERE table_schema = 'public' AND table_type = 'BASE TABLE'`)
	if err != nil {
		t.Fatal(err)
	}
	var tables []string
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			t.Fatal(err)
		}
		tables = append(tables, name)
	}
	all := map[string]string{}
	for _, name := range tables {
		var digest string
		if err := s.db.QueryRow(t.Context(), `SELECT count(*) || ' ' || coalesce(md5(string_agg(x::text, '|' ORDER BY x::text)), '') FROM `+name+` x`).Scan(&digest); err != nil {
			t.Fatal(err)
		}
		all[name] = digest
	}
	return all
}

// Values that no type forbids and no operator means: each is refused by its field, in every place where it can stand.
func TestAbsurdValues(t *testing.T) {
	s := newSite(t)
	before := s.everything(t)
	soon := `"expires_at": "2020-01-01T00:00:00Z"`
	for _, c := range []struct{ method, path, body, field string }{
		// Shares.
		{"PUT", "/v1/splits/a/r", `{"shares": {"eu": 9223372036854775807, "us": 1}}`, "shares"},
		{"PUT", "/v1/splits/a/r", `{"shares": {"eu": 1000001, "us": -1}}`, "shares"},
		{"PUT", "/v1/splits/a/r", `{"shares": {"eu": 700000, "mars": 300000}}`, "shares.mars"},
		{"PUT", "/v1/splits/a/r", `{"shares": {}}`, "shares"},
		{"PUT", "/v1/splits/a/r/pins", `{"shares": {"eu": 1000001}}`, "shares"},
		{"PUT", "/v1/splits/a/r/pins", `{"shares": {"eu": 500000, "": 1}}`, "shares"},
		{"PUT", "/v1/regions", `{"regions": {"eu": {"base": 1000001}, "us": {"base": -1}}}`, "regions"},
		{"PUT", "/v1/regions", `{"regions": {"eu": {"base": 4611686018427387904}, "us": {"base": 4611686018427387904}}}`, "regions"},
		{"PUT", "/v1/regions", `{"regions": {"eu": {"base": 700000, "domain": "a b\u0000"}, "us": {"base": 300000}}}`, "regions"},
		{"PATCH", "/v1/regions/us", `{"floor": 1000001}`, "floor"},
		{"PATCH", "/v1/regions/us", `{}`, "body"},
		{"PATCH", "/v1/regions/us", `{"state": ""}`, "state"},
		// Ends.
		{"PUT", "/v1/splits/a/r", `{"shares": {"eu": 500000, "us": 500000}, ` + soon + `}`, "expires_at"},
		{"PUT", "/v1/splits/a/r", `{"shares": {"eu": 500000, "us": 500000}, "for_seconds": -1}`, "for_seconds"},
		{"PUT", "/v1/splits/a/r/pins", `{"shares": {"eu": 500000}, "for_seconds": 9223372036854775807}`, "for_seconds"},
		{"PUT", "/v1/splits/a/r/pins", `{"shares": {"eu": 500000}, "for_seconds": 60, "expires_at": "2099-01-01T00:00:00Z"}`, "expires_at"},
		{"PUT", "/v1/splits/a/r/pins", `{"shares": {"eu": 500000}, "expires_at": "9999-12-31T23:59:59Z"}`, "expires_at"},
		{"PUT", "/v1/rules/a/r", `{"capacity": 1, "refill_per_second": 1, ` + soon + `}`, "expires_at"},
		{"POST", "/v1/rules", `{"rules": [{"tenant": "a", "route": "r", "capacity": 1, "refill_per_second": 1, ` + soon + `}]}`, "rules[0].expires_at"},
		{"POST", "/v1/keys", `{"tenant": "a", ` + soon + `}`, "expires_at"},
		{"POST", "/v1/keys", `{"tenant": "a", "label": "` + strings.Repeat("x", 501) + `"}`, "label"},
		{"POST", "/v1/keys", `{"tenant": ""}`, "tenant"},
		{"POST", "/v1/keys/" + strings.Repeat("a", 64) + "/rotate", `{"grace_seconds": 7776001}`, "grace_seconds"},
		// Names.
		{"PUT", "/v1/tenants/" + url.PathEscape("*"), `{"plan": "gold"}`, "id"},
		{"PUT", "/v1/tenants/" + url.PathEscape("@gold"), `{"plan": "gold"}`, "id"},
		{"PUT", "/v1/tenants/a", `{"plan": "@gold"}`, "plan"},
		{"PUT", "/v1/rules/a/@other", `{"mode": "block"}`, "route"},
		{"PUT", "/v1/rules/@/r", `{"mode": "block"}`, "tenant"},
		{"POST", "/v1/rules", `{"rules": [{"tenant": "a", "route": "r", "mode": "block"}, {"tenant": "", "route": "r", "mode": "block"}]}`, "rules[1].tenant"},
		// Parameters.
		{"PUT", "/v1/parameters/cycle", `{"value": "9999999h"}`, "cycle"},
		{"PUT", "/v1/parameters/floor", `{"value": 1.0000001}`, "floor"},
		{"PUT", "/v1/parameters/floor", `{"value": []}`, "floor"},
		{"PUT", "/v1/parameters/paused", `{"value": "perhaps"}`, "paused"},
		{"PUT", "/v1/parameters/history_days", `{"value": -1}`, "history_days"},
		{"POST", "/v1/rebalance/plan", `{"with": {"flor": 0.3}}`, "flor"},
		{"POST", "/v1/rebalance/plan", `{"with": {"floor": "NaN%"}}`, "floor"},
		{"POST", "/v1/rebalance/plan", `{"over_hours": 25}`, "over_hours"},
		{"POST", "/v1/rebalance/plan", `{"size": -1}`, "size"},
	} {
		var p Problem
		code := s.do(t, c.method, c.path, c.body, &p)
		if code < 400 || code > 499 || len(p.Errors) == 0 || p.Errors[0].Field != c.field && !strings.HasPrefix(p.Errors[0].Field, c.field+".") {
			t.Errorf("%s %s %s: %d %+v, want a 4xx about %s", c.method, c.path, c.body, code, p, c.field)
		}
	}
	if after := s.everything(t); !maps.Equal(before, after) {
		t.Errorf("refused requests have changed something:\n%v\n%v", before, after)
	}
}

// A rollback brings nothing back that would have ended by now: pins are gone, as they would be, and a rule is refused.
func TestWhatHasEndedDoesNotComeBack(t *testing.T) {
	s := newSite(t)
	past := func(sql string) {
		t.Helper()
		if _, err := s.db.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	undo := func(kind string, into any) int {
		t.Helper()
		var h Page[struct{ ID int64 }]
		s.do(t, "GET", "/v1/history?size=1&kind="+kind, "", &h)
		return s.do(t, "POST", fmt.Sprintf("/v1/history/%d/rollback", h.Items[0].ID), `{}`, into)
	}
	s.do(t, "PUT", "/v1/splits/a/r/pins", `{"shares": {"eu": 500000}, "for_seconds": 600}`, nil)
	past(`UPDATE split SET pin_expires_at = now() - interval '1 minute' WHERE pin_expires_at IS NOT NULL`)
	s.do(t, "PUT", "/v1/splits/a/r/pins", `{"shares": {"eu": 400000}, "for_seconds": 600}`, nil)
	var d struct{ Before, After map[string]any }
	if code := undo("pin", &d); code != http.StatusOK || d.After != nil || d.Before == nil {
		t.Errorf("a pin that has ended: %d %+v", code, d)
	}
	s.do(t, "PUT", "/v1/rules/a/r", `{"mode": "block", "expires_at": "2099-01-01T00:00:00Z"}`, nil)
	past(`UPDATE rate_limit_rule SET expires_at = now() - interval '1 minute'`)
	if code := s.do(t, "DELETE", "/v1/rules/a/r", "", nil); code != http.StatusOK {
		t.Fatal(code)
	}
	var p Problem
	if code := undo("rule", &p); code != http.StatusConflict || !strings.HasSuffix(p.Type, "cannot-roll-back") {
		t.Errorf("a rule that has ended: %d %+v", code, p)
	}
}
