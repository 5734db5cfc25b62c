package sim

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"
)

// short is a built-in scenario cut to d.
func short(t *testing.T, name string, d time.Duration) Scenario {
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
	scenarios := []Scenario{short(t, "S4a", 6*time.Minute), short(t, "S5", 2*time.Minute), short(t, "S12", 2*time.Minute)}
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
	s := short(t, "S9b", 10*time.Minute)
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

func TestCommand(t *testing.T) {
	var out, log bytes.Buffer
	if err := Command(t.Context(), []string{"-list"}, &out, &log); err != nil || !strings.Contains(out.String(), "S4a") {
		t.Errorf("list: %v\n%s", err, out.String())
	}
	for _, bad := range [][]string{{"-only", "S99"}, {"-seeds", "x"}, {"-seeds", "3-1"}, {"-strategies", "magic"}, {"extra"}} {
		if err := Command(t.Context(), append(bad, "-quiet"), &out, &log); err == nil {
			t.Errorf("%v is accepted", bad)
		}
	}
}
