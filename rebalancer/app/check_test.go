package app

import (
	"os"
	"strings"
	"testing"
)

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestCheck is case request-path 113: -check-config says what the start would say, also of the rules file.
func TestCheck(t *testing.T) {
	dir := t.TempDir()
	rules := dir + "/rules.yaml"
	write(t, dir+"/c.yaml", "rules_file: "+rules+"\nnats: {urls: [\"nats://127.0.0.1:1\"]}\n")
	for _, c := range []struct{ name, rules, want string }{
		{"no file", "", "no such file"},
		{"shares", "regions: {eu: 70%, us: 20%}\n", "rules.yaml:1: regions: shares add up to 90%"},
		{"duplicate rule", "regions: {eu: 100%}\nrules:\n- {tenant: a, route: r, capacity: 1, refill_per_second: 1}\n- {tenant: a, route: r, capacity: 1, refill_per_second: 1}\n", "rules.yaml:4: rules[1].route"},
		{"no regions", "revision: 1\n", "regions: missing"},
	} {
		if c.rules != "" {
			write(t, rules, c.rules)
		}
		if err := Check(Options{ConfigFile: dir + "/c.yaml"}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
		if err := Run(t.Context(), Options{ConfigFile: dir + "/c.yaml"}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: the start says %v, want %q", c.name, err, c.want)
		}
	}
	write(t, rules, "regions: {eu: 100%}\n")
	if err := Check(Options{ConfigFile: dir + "/c.yaml"}); err != nil {
		t.Error(err)
	}
}
