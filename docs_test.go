package partidor_test

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// A test that CONTRIBUTING.md names must exist where it says.
func TestCasesAreShownWhereContributingSays(t *testing.T) {
	path, name := regexp.MustCompile("^`([^`]+_test\\.go)` "), regexp.MustCompile(`Test\w+`)
	found := 0
	for _, line := range tableRows(t, "CONTRIBUTING.md") {
		cells := strings.Split(line, "|")
		if strings.HasPrefix(strings.TrimSpace(cells[1]), "`make ") {
			continue // a row of the table of commands
		}
		file := ""
		for _, item := range strings.Split(strings.TrimSpace(cells[2]), ", ") {
			if m := path.FindStringSubmatch(item); m != nil {
				file = m[1]
			}
			source, err := os.ReadFile(file)
			if err != nil {
				t.Errorf("%s: %v", cells[1], err)
				continue
			}
			if test := name.FindString(item); !strings.Contains(string(source), "func "+test+"(") {
				t.Errorf("%s: %s has no %s", cells[1], file, test)
			}
			found++
		}
	}
	if found == 0 {
		t.Error("CONTRIBUTING.md has no table of cases")
	}
}

// A file or folder that ARCHITECTURE.md leads to must be there.
func TestArchitectureLeadsToWhatIsThere(t *testing.T) {
	quoted := regexp.MustCompile("`([a-z][\\w./-]*/[\\w./-]*)`")
	for _, line := range tableRows(t, "ARCHITECTURE.md") {
		for _, m := range quoted.FindAllStringSubmatch(line, -1) {
			if _, err := os.Stat(m[1]); err != nil {
				t.Errorf("%s: %v", strings.TrimSpace(strings.Split(line, "|")[1]), err)
			}
		}
	}
}

// tableRows are the rows of a document's tables, without their heads.
func tableRows(t *testing.T, document string) (rows []string) {
	t.Helper()
	data, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(data), "\n")
	for i, line := range lines {
		head := i+1 < len(lines) && strings.HasPrefix(lines[i+1], "| ---")
		if strings.HasPrefix(line, "| ") && !head && !strings.HasPrefix(line, "| ---") {
			rows = append(rows, line)
		}
	}
	return rows
}
