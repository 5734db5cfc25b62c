package sim

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestScenarioFile(t *testing.T) {
	s, err := LoadScenario("testdata/flash.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if len(s.Regions) != 3 || s.Regions[2].Base != 200_000 || s.Network.Reorder != 0.05 || len(s.Faults) != 2 || s.Gates.Efficiency != 0.9 {
		t.Fatalf("read as %+v", s)
	}
	load := s.Regions[1].Traffic.Load(1, 1, s.Duration)
	for at, want := range map[time.Duration]float64{0: 40, 65 * time.Second: 170, 2 * time.Minute: 220} {
		if got := load(at); got < want-25 || got > want+25 {
			t.Errorf("us at %v: %v/s, want about %v", at, got, want)
		}
	}
	if o := worst(t, s, NamePartidor); o.Depth >= 1 || o.Efficiency() < 0.9 {
		t.Errorf("played: %+v", o)
	}
}

func TestScenarioFileRefuses(t *testing.T) {
	good, err := os.ReadFile("testdata/flash.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string][2]string{
		"unknown field":       {"duration: 4m", "durration: 4m"},
		"duration":            {"duration: 4m", "duration: 1ms"},
		"share sum":           {"share: 50%", "share: 60%"},
		"negative rate":       {"constant: 5", "constant: -5"},
		"two kinds":           {"- constant: 5", "- {constant: 5, trace: x.csv}"},
		"unknown region":      {"isolated: eu", "isolated: mars"},
		"two faults in one":   {"isolated: eu", "isolated: eu\n    down: us"},
		"fault ends early":    {"to: 3m", "to: 1m"},
		"loss of everything":  {"loss: 0.01", "loss: 1"},
		"no capacity":         {"capacity: 500", "capacity: 0"},
		"missing trace":       {"trace.csv", "nothing.csv"},
		"points out of order": {"at: 70s", "at: 10s"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "s.yaml")
			text := strings.Replace(string(good), change[0], change[1], 1)
			if text == string(good) {
				t.Fatal("the change changes nothing")
			}
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			if _, err := LoadScenario(path); err == nil {
				t.Error("accepted")
			} else {
				t.Log(err)
			}
		})
	}
}
