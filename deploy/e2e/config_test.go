package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"partidor.dev/partidor/shared/testenv"
)

func ready(body []byte) bool {
	var r struct{ Status string }
	return json.Unmarshal(body, &r) == nil && r.Status == "ready"
}

// Configurations that must never start: both -check-config and the start itself say file, line and field, and exit
// non-zero.
func TestBadConfigurationIsRefused(t *testing.T) {
	const good = "region: eu\nupstreams:\n  orders: {targets: [{url: http://127.0.0.1:1}]}\nroutes:\n  - {id: create-order, path: /orders, upstream: orders}\nrules: {file: RULES}\n"
	rules := filepath.Join(t.TempDir(), "rules.yaml")
	for _, tc := range []struct {
		name, config, rules string
		want                []string
	}{
		{"misspelt field", strings.Replace(good, "region:", "regoin:", 1), "", []string{"gateway.yaml:1", "regoin"}},
		{"route to nowhere", strings.Replace(good, "upstream: orders", "upstream: order", 1), "", []string{"gateway.yaml:5", "routes[0].upstream"}},
		{"two routes with one id", strings.Replace(good, "rules:", "  - {id: create-order, path: /other, upstream: orders}\nrules:", 1), "", []string{"gateway.yaml:6", "routes[1].id"}},
		{"shares that do not add up", good, "regions: {eu: 70%, us: 20%}\n", []string{"rules.yaml:1", "regions"}},
		{"negative capacity", good, "regions: {eu: 70%, us: 30%}\nrules:\n  - {tenant: a, route: b, capacity: -1, refill_per_second: 1}\n", []string{"rules.yaml:3", "capacity"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "gateway.yaml")
			write := func(path, text string) {
				if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			write(path, strings.Replace(tc.config, "RULES", rules, 1))
			write(rules, tc.rules)
			for _, args := range [][]string{{"-check-config"}, nil} {
				p := testenv.StartProgram(t, append([]string{program("gateway"), "-config", path}, args...))
				if status := p.Wait(patient); status == 0 {
					t.Errorf("%v: exit status 0", args)
				}
				for _, want := range tc.want {
					if !strings.Contains(p.Output(), want) {
						t.Errorf("%v: %q is not in\n%s", args, want, p.Output())
					}
				}
			}
		})
	}
}
