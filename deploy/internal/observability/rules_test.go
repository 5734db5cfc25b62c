package observability

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"partidor.dev/partidor/shared/testenv"
)

// The rules and the example configuration are good, and each alert fires when it should, by promtool's own judgement.
func TestPromtoolIsContent(t *testing.T) {
	for _, args := range [][]string{
		{"check", "config", "--syntax-only", "deploy/prometheus/prometheus.yaml"},
		{"check", "rules", rulesFile},
		{"test", "rules", "deploy/prometheus/partidor_test.yaml"},
	} {
		args[len(args)-1] = filepath.Join(repository(t), args[len(args)-1])
		if out, err := testenv.Promtool(t, args...); err != nil {
			t.Errorf("promtool %v: %v\n%s", args, err, out)
		}
	}
}

// Every alert has its unit test, and a heading in the runbook with all that is needed at night; no heading is without alert.
func TestAlertsHaveRunbooks(t *testing.T) {
	runbook, tests := read(t, "deploy/runbooks/alerts.md"), read(t, "deploy/prometheus/partidor_test.yaml")
	sections := map[string]string{}
	for _, s := range strings.Split(runbook, "\n## ")[1:] {
		title, text, _ := strings.Cut(s, "\n")
		sections[title] = text
	}
	alerts := map[string]bool{}
	for _, r := range rules(t) {
		if r.Alert == "" || alerts[r.Alert] {
			continue
		}
		alerts[r.Alert] = true
		text, ok := sections[r.Alert]
		if !ok {
			t.Errorf("%s has no heading in the runbook", r.Alert)
			continue
		}
		for _, part := range []string{"**Meaning.**", "**Impact.**", "**Checks.**", "**Action.**"} {
			if !strings.Contains(text, part) {
				t.Errorf("%s: no %s", r.Alert, part)
			}
		}
		if want := "deploy/runbooks/alerts.md#" + strings.ToLower(r.Alert); r.Annotations["runbook"] != want {
			t.Errorf("%s leads to %q, want %q", r.Alert, r.Annotations["runbook"], want)
		}
		if s := r.Labels["severity"]; s != "page" && s != "ticket" {
			t.Errorf("%s: severity %q", r.Alert, s)
		}
		if !regexp.MustCompile(`alertname: `+r.Alert+`, exp_alerts: \[\]`).MatchString(tests) ||
			!regexp.MustCompile(`alertname: `+r.Alert+`\n +exp_alerts:\n`).MatchString(tests) {
			t.Errorf("%s is not tested both ways", r.Alert)
		}
	}
	for title := range sections {
		if !alerts[title] {
			t.Errorf("the runbook speaks of %s, which no rule fires", title)
		}
	}
}
