package sim

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// cut is a built-in scenario cut to d.
func cut(t *testing.T, name string, d time.Duration) Scenario {
	t.Helper()
	all := Builtin()
	i := slices.IndexFunc(all, func(s Scenario) bool { return s.Name == name })
	if i < 0 {
		t.Fatalf("no scenario %s", name)
	}
	all[i].Duration = d
	return all[i]
}

// worst joins the outcomes of a few seeds.
func worst(t *testing.T, s Scenario, strategy string) (o Outcome) {
	t.Helper()
	job := Job{Scenarios: []Scenario{s}, Strategies: []string{strategy}, Seeds: []uint64{7, 8, 9, 10}}
	results, err := job.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for i := range results {
		o = o.add(results[i].Outcome)
	}
	return o
}

func TestSameSeedSameBytes(t *testing.T) {
	scenarios := []Scenario{cut(t, "S4a", 6*time.Minute), cut(t, "S5", 2*time.Minute), cut(t, "S12", 2*time.Minute)}
	var first []byte
	for _, parallel := range []int{1, 2} {
		job := Job{Scenarios: scenarios, Strategies: StrategyNames(), Seeds: []uint64{4, 5}, Plots: true, Parallel: parallel}
		results, err := job.Run(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		report := NewReport(scenarios, results)
		var out bytes.Buffer
		if err := report.WriteJSON(&out); err != nil {
			t.Fatal(err)
		}
		if err := report.WriteTable(&out); err != nil {
			t.Fatal(err)
		}
		if err := report.WriteHTML(&out, scenarios); err != nil {
			t.Fatal(err)
		}
		if first == nil {
			first = out.Bytes()
		} else if !bytes.Equal(first, out.Bytes()) {
			t.Error("the same seeds give other bytes")
		}
	}
}

func TestStaticNeverExceedsAndProportionalDoes(t *testing.T) {
	s := cut(t, "S9b", 10*time.Minute)
	if o := worst(t, s, NameStatic); o.Depth >= 1 {
		t.Errorf("the static split exceeds the limit by %v tokens", o.Depth)
	}
	if o := worst(t, s, NameProportional); o.Depth < 100 {
		t.Errorf("a rewrite cut in half exceeds the limit by %v tokens only: the checker is blind", o.Depth)
	}
	if o := worst(t, s, NamePartidor); o.Depth >= 1 {
		t.Errorf("partidor exceeds the limit by %v tokens", o.Depth)
	}
}

// command runs `simulate` with arguments and returns what it printed.
func command(t *testing.T, args ...string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	cmd := Command()
	cmd.SetArgs(args)
	cmd.SetOut(&out)
	cmd.SetErr(io.Discard)
	cmd.SilenceUsage, cmd.SilenceErrors = true, true
	err := cmd.ExecuteContext(t.Context())
	return out.String(), err
}

func TestCommand(t *testing.T) {
	if out, err := command(t, "--list"); err != nil || !strings.Contains(out, "S4a") {
		t.Errorf("list: %v\n%s", err, out)
	}
	for _, bad := range [][]string{
		{"--only", "S99"}, {"--seeds", "x"}, {"--seeds", "3-1"}, {"--strategies", "magic"}, {"--format", "xml"}, {"extra"},
	} {
		if _, err := command(t, append(bad, "--quiet")...); err == nil {
			t.Errorf("%v is accepted", bad)
		}
	}
	html := filepath.Join(t.TempDir(), "report.html")
	out, err := command(t, "--file", "testdata/flash.yaml", "--seeds", "1", "--format", "json", "--html", html)
	if err != nil {
		t.Fatal(err)
	}
	var report Report
	if err := json.Unmarshal([]byte(out), &report); err != nil || len(report.Summaries) != 2 || len(report.Results) != 2 {
		t.Errorf("json: %v\n%s", err, out)
	}
	page, err := os.ReadFile(html)
	if err != nil || !bytes.Contains(page, []byte("<polyline")) || bytes.Contains(page, []byte("ZgotmplZ")) || bytes.Contains(page, []byte("http")) {
		t.Errorf("page of %d bytes: %v", len(page), err)
	}
}

// A missed gate is told and fails the command.
func TestMissedGatesFail(t *testing.T) {
	text, err := os.ReadFile("testdata/flash.yaml")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	path := filepath.Join(dir, "strict.yaml")
	strict := strings.NewReplacer("efficiency_percent: 90", "efficiency_percent: 100.1", "- trace: trace.csv", "- constant: 1").Replace(string(text))
	if err := os.WriteFile(path, []byte(strict), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := command(t, "--file", path, "--seeds", "1")
	if !errors.Is(err, ErrGates) || !strings.Contains(out, "MISSED flash seed 1: efficiency") {
		t.Errorf("error %v\n%s", err, out)
	}
	if _, err := command(t, "--file", path, "--seeds", "1", "--gates=false"); err != nil {
		t.Errorf("without gates: %v", err)
	}
}
