package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

var tenants = flag.Int("tenants", 500, "tenants, of three routes each, that TestScale makes; make scale has 100,000")

// TestScale: every verb that sees all rules works with as many as there are, and tells what it took. Nothing is lost on the way
// through a file: what is applied is what is exported, in pages.
func TestScale(t *testing.T) {
	d := newDesk(t)
	file := filepath.Join(t.TempDir(), "rules.yaml")
	rules := 3 * *tenants
	var text bytes.Buffer
	text.WriteString("rules:\n")
	for i := range rules {
		fmt.Fprintf(&text, "- {tenant: tenant-%06d, route: route-%d, capacity: %d, refill_per_second: 100, reason: a contract of this year}\n", i/3, i%3, 200+i%7)
	}
	if err := os.WriteFile(file, text.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	timed := func(what, hold string, words ...string) string {
		t.Helper()
		start := time.Now()
		out := d.want(t, exitOK, hold, append(words, "--timeout", "10m")...)
		t.Logf("%-28s %7d rules %8.2f s", what, rules, time.Since(start).Seconds())
		return out
	}
	last := fmt.Sprintf("tenant-%06d", *tenants-1)
	timed("rules apply", fmt.Sprintf("%d to create", rules), "rules", "apply", "-f", file, "--yes")
	timed("rules diff, no difference", fmt.Sprintf("%d unchanged", rules), "rules", "diff", "-f", file, "--prune")
	if out := timed("rules export", "", "rules", "export"); strings.Count(out, "tenant:") != rules {
		t.Errorf("%d rules exported, want %d", strings.Count(out, "tenant:"), rules)
	}
	timed("rules get --search", last, "rules", "get", "--search", last[7:])
	timed("rules get TENANT", last, "rules", "get", last)
	timed("explain", "a rule of this tenant for this route", "explain", last, "route-2")
	timed("rules set", "~ capacity", "rules", "set", last, "route-2", "--capacity", "999", "--yes")
	timed("splits show TENANT ROUTE", "", "splits", "show", last, "route-2")
	if err := os.WriteFile(file, bytes.Replace(text.Bytes(), []byte("capacity: 201"), []byte("capacity: 1"), 1), 0o600); err != nil {
		t.Fatal(err)
	}
	timed("rules apply, two changes", "2 to change", "rules", "apply", "-f", file, "--yes")
}
