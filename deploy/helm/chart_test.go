package helm_test

import (
	"crypto/sha256"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
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
