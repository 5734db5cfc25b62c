package helm_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	gateway "partidor.dev/partidor/gateway/app"
	rebalancer "partidor.dev/partidor/rebalancer/app"
	"partidor.dev/partidor/shared/rulesfile"
)

// What is wrong is called the same everywhere. faults.json has it once: the fault, as it is made in Terraform, in the chart's values
// and in the programs' own files, and the words for it. Here the programs say them, in `make chart-test` the chart, in
// `make terraform-test` every plan.
func TestFaultsHaveTheSameWords(t *testing.T) {
	data, err := os.ReadFile("faults.json")
	if err != nil {
		t.Fatal(err)
	}
	var faults []struct{ Fault, Words, Rules, Gateway, Rebalancer string }
	if err := json.Unmarshal(data, &faults); err != nil {
		t.Fatal(err)
	}
	said := 0
	for _, f := range faults {
		for _, c := range []struct {
			text string
			say  func(text string) error
		}{
			{f.Rules, func(text string) error { _, err := rulesfile.Parse("rules.yaml", []byte(text)); return err }},
			{f.Gateway, func(text string) error {
				_, err := gateway.Check(t.Context(), gateway.Options{Config: []byte("region: eu\nrules: {file: rules.yaml}\n" + text)})
				return err
			}},
			{f.Rebalancer, func(text string) error {
				path := filepath.Join(t.TempDir(), "rules.yaml")
				if err := os.WriteFile(path, []byte("revision: 1\nregions: {eu: 100%}\n"), 0o600); err != nil {
					t.Fatal(err)
				}
				return rebalancer.Check(rebalancer.Options{Config: []byte("instance: a\nrules_file: " + path + "\n" + text)})
			}},
		} {
			if c.text == "" {
				continue
			}
			if err := c.say(c.text); err == nil || !strings.Contains(err.Error(), f.Words) {
				t.Errorf("%s: %v, want it to hold %q", f.Fault, err, f.Words)
			}
			said++
		}
	}
	if said < 7 {
		t.Errorf("only %d faults of the programs", said)
	}
}
