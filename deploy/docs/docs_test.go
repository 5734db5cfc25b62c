package docs_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Every file that a guide names is there, and so is every test by which the threat model says it is shown.
func TestGuidesNameWhatIsThere(t *testing.T) {
	guides, err := filepath.Glob("*.md")
	if err != nil || len(guides) < 5 {
		t.Fatalf("%d guides, %v", len(guides), err)
	}
	link := regexp.MustCompile(`\]\(([^)#:]+)\)`)
	quoted := regexp.MustCompile("`((?:deploy|gateway|rebalancer|shared|terraform|lua)/[\\w./-]+)`")
	shown := regexp.MustCompile("`([\\w./-]+_test\\.go)`((?:,? Test\\w+)+)")
	for _, guide := range guides {
		data, err := os.ReadFile(guide)
		if err != nil {
			t.Fatal(err)
		}
		text := string(data)
		for _, m := range link.FindAllStringSubmatch(text, -1) {
			exists(t, guide, m[1])
		}
		for _, m := range quoted.FindAllStringSubmatch(text, -1) {
			if !strings.HasPrefix(m[1], "deploy/compose/secrets") {
				exists(t, guide, filepath.Join("../..", m[1]))
			}
		}
		for _, m := range shown.FindAllStringSubmatch(text, -1) {
			source, err := os.ReadFile(filepath.Join("../..", m[1]))
			for _, name := range strings.FieldsFunc(m[2], func(r rune) bool { return r == ',' || r == ' ' }) {
				if err != nil || !strings.Contains(string(source), "func "+name+"(") {
					t.Errorf("%s: %s has no %s", guide, m[1], name)
				}
			}
		}
	}
}

func exists(t *testing.T, guide, path string) {
	t.Helper()
	if _, err := os.Stat(path); err != nil {
		t.Errorf("%s: %v", guide, err)
	}
}
