package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What rules apply does not make it does not leave out in silence: each such section is refused by name and line.
func TestApplyRefusesWhatItDoesNotMake(t *testing.T) {
	d := newDesk(t)
	file := filepath.Join(t.TempDir(), "rules.yaml")
	for _, c := range []struct{ text, want string }{
		{"tenants:\n- {id: a}\n", "rules.yaml:3: tenants: only rules are applied; that is made by partidorctl plans assign"},
		{"# a word\napi_keys:\n- {tenant: a, key: k}\n", "rules.yaml:4: api_keys:"},
		{"regions: {eu: 70%, us: 30%}\n", "rules.yaml:3: regions:"},
		{"default: {capacity: 5, refill_per_second: 1}\n", "rules.yaml:3: default:"},
	} {
		if err := os.WriteFile(file, []byte("rules:\n- {tenant: a, route: r, capacity: 10, refill_per_second: 1}\n"+c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, verb := range []string{"apply", "diff"} {
			words := []string{"rules", verb, "-f", file}
			if verb == "apply" {
				words = append(words, "--yes")
			}
			d.want(t, exitUsage, c.want, words...)
		}
		d.want(t, exitNotFound, "", "rules", "get", "a", "r")
	}
	d.want(t, exitOK, "1 to create", "rules", "apply", "-f", file, "--yes", "--rules-only")
	d.want(t, exitOK, "1 unchanged", "rules", "diff", "-f", file, "--rules-only")
}

// One bad line of ten thousand changes nothing and is named, whichever it is; so is what only the ledger can judge.
func TestOneBadLineOfTenThousand(t *testing.T) {
	d := newDesk(t)
	file := filepath.Join(t.TempDir(), "rules.yaml")
	const lines = 10_000
	for _, c := range []struct {
		at        int // line, counting from 1; the first is the section's name
		bad, want string
	}{
		{2, "- {tenant: bad, route: r, capacity: 0, refill_per_second: 1}", "rules.yaml:2: rules[0].capacity"},
		{5_001, "- {tenant: bad, route: r, capacity: 1, refill_per_second: 1, burst: 3}", "rules.yaml:5001: rules[4999].burst"},
		{lines + 1, "- {tenant: bad, route: r, capacity: ten, refill_per_second: 1}", "rules.yaml:10001: rules[9999].capacity"},
		{7_777, "- {tenant: t00001, route: r, capacity: 1, refill_per_second: 1}", "rules.yaml:7777: rules[7775]"}, // twice
		{3, "- {tenant: '', route: r, capacity: 1, refill_per_second: 1}", "rules.yaml:3: rules[1].tenant"},
		{4, "- {tenant: bad, route: r, capacity: 1, refill_per_second: 1", "rules.yaml:5: "}, // where the next one begins
	} {
		var text strings.Builder
		text.WriteString("rules:\n")
		for line := 2; line <= lines+1; line++ {
			if line == c.at {
				fmt.Fprintln(&text, c.bad)
				continue
			}
			fmt.Fprintf(&text, "- {tenant: t%05d, route: r, capacity: 10, refill_per_second: 1}\n", line-1)
		}
		if err := os.WriteFile(file, []byte(text.String()), 0o600); err != nil {
			t.Fatal(err)
		}
		d.want(t, exitUsage, c.want, "rules", "apply", "-f", file, "--yes")
	}
	var n int
	if err := d.db.QueryRow(t.Context(), `SELECT count(*) FROM rate_limit_rule`).Scan(&n); err != nil || n != 0 {
		t.Errorf("%d rules were written, %v", n, err)
	}
}
