package helm_test

import (
	"crypto/sha256"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The golden files are those of the chart as it stands. Rendering needs Helm, which takes minutes to build, so `make check` compares a
// digest of everything that the chart is made of with the one that was noted when it was rendered last.
func TestGoldenFilesAreOfThisChart(t *testing.T) {
	const chart, note = "partidor", "partidor/ci/golden/chart.sha256"
	sum := sha256.New()
	err := filepath.WalkDir(chart, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || path == filepath.FromSlash(note) {
			return err
		}
		data, err := os.ReadFile(path) // follows the links into deploy/redis
		if err != nil {
			return err
		}
		fmt.Fprintf(sum, "%s %d\n%s", filepath.ToSlash(path), len(data), data)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	got := fmt.Sprintf("%x\n", sum.Sum(nil))
	if os.Getenv("UPDATE") != "" {
		if err := os.WriteFile(note, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(note)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Error("the chart has changed since its examples were rendered: make chart-test UPDATE=1, and look at git diff deploy/helm")
	}
}

// What is wrong is called the same everywhere: by terraform plan, by the chart and by the programs.
func TestFaultsHaveTheSameWords(t *testing.T) {
	read := func(paths ...string) string {
		var all strings.Builder
		for _, p := range paths {
			data, err := os.ReadFile(p)
			if err != nil {
				t.Fatal(err)
			}
			all.Write(data)
		}
		// Terraform and Go write a percent sign in formats in ways of their own.
		return strings.NewReplacer("100%%", "100%").Replace(all.String())
	}
	templates, err := filepath.Glob("partidor/templates/*")
	if err != nil {
		t.Fatal(err)
	}
	terraform := read("../../terraform/modules/region/variables.tf", "../../terraform/modules/control-plane/variables.tf")
	chart := read(append(templates, "partidor/values.schema.json")...)
	programs := read("../../shared/rulesfile/faults.go", "../../shared/rulesfile/region.go", "../../gateway/internal/config/validate_store.go", "../../rebalancer/internal/config/validate.go")
	for _, c := range []struct {
		fault, words string
		in           []string // where it can be made
	}{
		{"shares that do not add up", "shares add up to ", []string{"terraform", "chart", "programs"}},
		{"shares that do not add up", "must be exactly 100%", []string{"terraform", "chart", "programs"}},
		{"a floor above the share", "is above the base share", []string{"terraform", "chart", "programs"}},
		{"no Redis", "redis.addresses", []string{"terraform", "chart", "programs"}},
		{"no NATS", "nats.urls", []string{"terraform", "chart", "programs"}},
		{"an endpoint missing", "at least one", []string{"terraform", "chart", "programs"}},
		{"a region named twice", "is listed twice", []string{"chart", "programs"}}, // a map of Terraform cannot say it
	} {
		for _, where := range c.in {
			if text := map[string]string{"terraform": terraform, "chart": chart, "programs": programs}[where]; !strings.Contains(text, c.words) {
				t.Errorf("%s: %s does not say %q", c.fault, where, c.words)
			}
		}
	}
}
