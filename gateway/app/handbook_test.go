package app_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Every metric that the handbook names is one that the code declares.
func TestHandbookNamesRealMetrics(t *testing.T) {
	declared := map[string]bool{}
	literal := regexp.MustCompile(`"(partidor\.[a-z_.]+)"`)
	for _, dir := range []string{"..", "../../shared"} {
		err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			text, err := os.ReadFile(path)
			for _, m := range literal.FindAllSubmatch(text, -1) {
				declared[strings.ReplaceAll(string(m[1]), ".", "_")] = true
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile("../../deploy/docs/gateway.md")
	if err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile("`(partidor_[a-z_]+)").FindAllSubmatch(text, -1)
	if len(named) < 5 {
		t.Fatalf("only %d metrics found in the handbook", len(named))
	}
	for _, m := range named {
		name := regexp.MustCompile("_(total|seconds|ratio|bytes)$").ReplaceAllString(string(m[1]), "")
		if name != "partidor_gateway" && !declared[name] { // the role in PostgreSQL
			t.Errorf("the handbook names %s, which nothing declares", m[1])
		}
	}
}
