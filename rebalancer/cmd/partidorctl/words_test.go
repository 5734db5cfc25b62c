package main

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"partidor.dev/partidor/rebalancer/app"
)

// TestFileAndServerSayTheSame is case request-path 113: what the server would refuse is refused in a file, with a line and a non-zero
// exit code, in the same words; the rebalancer's own check of a rules file says them too.
func TestFileAndServerSayTheSame(t *testing.T) {
	d := newDesk(t)
	file := filepath.Join(t.TempDir(), "rules.yaml")
	const good = `{"tenant": "a", "route": "r", "capacity": 10, "refill_per_second": 1}`
	for _, bad := range []string{
		good, // the same again
		`{"tenant": "b", "route": "r", "capacity": 0, "refill_per_second": 1}`,
		`{"tenant": "b", "route": "r", "capacity": -1, "refill_per_second": 1}`,
		`{"tenant": "b", "route": "r", "capacity": "ten", "refill_per_second": 1}`,
		`{"tenant": "b", "route": "r", "capacity": 1.5, "refill_per_second": 1}`,
		`{"tenant": "b", "route": "r", "capacity": 9223372036854775808, "refill_per_second": 1}`,
		`{"tenant": "b", "route": "r", "capacity": 10, "refill_per_second": 2000000000}`,
		`{"tenant": "b", "route": "r", "capacity": 10, "refill_per_second": -5}`,
		`{"tenant": "b", "route": "r", "capacity": 10}`,
		`{"tenant": "b", "route": "r", "mode": "of"}`,
		`{"tenant": "b", "route": "r", "mode": "block", "prefetch": "yes"}`,
		`{"tenant": "b", "route": "r", "mode": "block", "window_seconds": 5}`,
		`{"tenant": "b", "route": "r", "mode": "block", "expires_at": "tomorrow"}`,
		`{"tenant": "b", "route": "r", "mode": "block", "zzzzzzzz": 1}`,
		`{"tenant": "b", "route": "r", "algorithm": "magic", "capacity": 10, "refill_per_second": 1}`,
		`{"tenant": "b", "route": "r", "algorithm": "fixed_window", "capacity": 10}`,
		`{"tenant": "b", "route": "r", "capacity": 100, "refill_per_second": 1, "shards": 4}`,
		`{"tenant": "", "route": "r", "mode": "block"}`,
		`{"tenant": "b", "route": "@other", "mode": "block"}`,
	} {
		if err := os.WriteFile(file, []byte("revision: 1\nregions: {eu: 100%}\nrules:\n- "+good+"\n- "+bad+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		_, errOut, code := d.run(t, "", "rules", "apply", "-f", file, "--yes", "--rules-only")
		m := regexp.MustCompile(`rules\.yaml:5: (?:rules\[1\]\.?([a-z_]*): )?(.*)`).FindStringSubmatch(errOut)
		if code != exitUsage || m == nil {
			t.Errorf("%s: exit %d, want %d and line 5\n%s", bad, code, exitUsage, errOut)
			continue
		}
		field := m[1]
		words := strings.TrimPrefix(strings.TrimSpace(m[2]), field+": ") // words of a vocabulary name their field themselves

		res, err := http.Post(d.url+"/v1/rules?dry_run=true", "application/json", strings.NewReader(`{"rules": [`+good+`, `+bad+`]}`))
		if err != nil {
			t.Fatal(err)
		}
		var p problem
		if err := json.NewDecoder(res.Body).Decode(&p); err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if res.StatusCode != http.StatusBadRequest || len(p.Errors) == 0 || p.Errors[0].Detail != words || !strings.HasSuffix(p.Errors[0].Field, field) {
			t.Errorf("%s: the file says %s: %q, the server %d %+v", bad, field, words, res.StatusCode, p)
		}

		err = app.Check(app.Options{Config: []byte("rules_file: " + file + "\nnats: {urls: [\"nats://127.0.0.1:1\"]}\n")})
		if err == nil || !strings.Contains(err.Error(), "rules.yaml:5: ") || !strings.Contains(err.Error(), words) {
			t.Errorf("%s: the rebalancer's check says %v", bad, err)
		}
	}
}
