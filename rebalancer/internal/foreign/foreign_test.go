package foreign

import (
	"strings"
	"testing"

	"partidor.dev/partidor/shared/rulesfile"
)

// say is a rule in one line.
func say(r rulesfile.Rule) string {
	parts := []string{r.Tenant, r.Route}
	if r.Capacity > 0 {
		out, _ := (&rulesfile.File{Rules: []rulesfile.Rule{r}}).Marshal()
		for _, l := range strings.Split(string(out), "\n") {
			l = strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(l), "- "))
			for _, name := range []string{"capacity", "algorithm", "window_seconds", "window", "mode", "on_error", "hide_headers"} {
				if strings.HasPrefix(l, name+":") {
					parts = append(parts, l)
				}
			}
		}
		return strings.Join(parts, " ")
	}
	return strings.Join(append(parts, r.Mode.String()), " ")
}

func check(t *testing.T, r Result, rules, notes []string) {
	t.Helper()
	if len(r.Rules) != len(rules) {
		t.Errorf("%d rules, want %d", len(r.Rules), len(rules))
	}
	for i := range min(len(r.Rules), len(rules)) {
		if got := say(r.Rules[i]); got != rules[i] {
			t.Errorf("rule %d is %q, want %q", i, got, rules[i])
		}
	}
	if len(r.Notes) != len(notes) {
		t.Errorf("notes %+v, want %d", r.Notes, len(notes))
	}
	for i := range min(len(r.Notes), len(notes)) {
		if got := r.Notes[i].Path + ": " + r.Notes[i].Text; !strings.HasPrefix(got, notes[i]) {
			t.Errorf("note %d is %q, want %q…", i, got, notes[i])
		}
	}
}

func TestKong(t *testing.T) {
	r, err := Kong([]byte(`
_format_version: "3.0"
services:
- name: orders
  url: http://orders
  routes:
  - name: create-order
    plugins:
    - name: rate-limiting
      config: {minute: 60, hour: 1000, policy: redis, fault_tolerant: false, hide_client_headers: true}
  - name: list-orders
  plugins:
  - name: rate-limiting-advanced
    config: {limit: [100], window_size: [30], window_type: sliding}
consumers:
- username: shop-a
  plugins:
  - name: rate-limiting
    config: {day: 5000}
plugins:
- name: rate-limiting
  consumer: shop-b
  route: {name: create-order}
  config: {second: 5}
- name: rate-limiting
  config: {minute: 10, limit_by: ip}
- name: rate-limiting
  enabled: false
  config: {minute: 10}
- name: request-size-limiting
- name: cors
`))
	if err != nil {
		t.Fatal(err)
	}
	check(t, r, []string{
		"shop-a * capacity: 5000 algorithm: fixed_window window: day",
		"* create-order capacity: 1000 algorithm: fixed_window window: hour on_error: deny hide_headers: true",
		"shop-b create-order capacity: 5 algorithm: fixed_window window_seconds: 1",
		"* list-orders capacity: 100 algorithm: sliding_window_counter window_seconds: 30",
	}, []string{
		"services[0].routes[0].plugins[0]: 60 per minute is left out",
		"plugins[1]: counts by ip",
		"plugins[2]: is disabled",
		"plugins[3]: plugin request-size-limiting has no counterpart",
		"services[0].plugins[0]: counts over all 2 routes",
		"services[0].plugins[0]: tenant * and route create-order have a limit already",
	})
}

func TestEnvoy(t *testing.T) {
	r, err := Envoy([]byte(`
domain: shop
descriptors:
- key: tenant
  rate_limit: {unit: minute, requests_per_unit: 600}
  descriptors:
  - key: route
    value: create-order
    rate_limit: {unit: second, requests_per_unit: 10}
- key: tenant
  value: shop-a
  rate_limit: {unlimited: true}
  descriptors:
  - {key: route, value: export, rate_limit: {unit: hour, requests_per_unit: 0}}
  - {key: route, value: report, shadow_mode: true, rate_limit: {unit: day, requests_per_unit: 3}}
  - {key: route, value: "old*", rate_limit: {unit: day, requests_per_unit: 3}}
- key: remote_address
  rate_limit: {unit: second, requests_per_unit: 3}
`), EnvoyKeys{Tenant: "tenant", Route: "route"})
	if err != nil {
		t.Fatal(err)
	}
	check(t, r, []string{
		"* * capacity: 600 algorithm: fixed_window window_seconds: 60",
		"* create-order capacity: 10 algorithm: fixed_window window_seconds: 1",
		"shop-a * unlimited",
		"shop-a export block",
		"shop-a report capacity: 3 algorithm: fixed_window window: day mode: shadow",
	}, []string{
		`descriptors[1].descriptors[2]: value "old*" matches by prefix`,
		`descriptors[2]: descriptor "remote_address" stands for neither`,
	})
}

func FuzzKong(f *testing.F) {
	f.Add([]byte("plugins:\n- name: rate-limiting\n  config: {minute: 1}\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := Kong(data)
		if err != nil {
			return
		}
		if err := (&rulesfile.File{Rules: r.Rules}).Validate(); err != nil {
			t.Errorf("an import that is no rules file: %v", err)
		}
	})
}
