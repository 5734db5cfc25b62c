package observability

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
)

const rulesFile = "deploy/prometheus/partidor.rules.yaml"

// rule is one recording or alert rule.
type rule struct {
	Record, Alert string
	Expr          string
	Labels        map[string]string
	Annotations   map[string]string
}

func rules(t *testing.T) (all []rule) {
	t.Helper()
	var file struct {
		Groups []struct{ Rules []rule }
	}
	if err := yaml.Unmarshal([]byte(read(t, rulesFile)), &file); err != nil {
		t.Fatal(err)
	}
	for _, g := range file.Groups {
		all = append(all, g.Rules...)
	}
	if len(all) == 0 {
		t.Fatal("no rules")
	}
	return all
}

// query is an expression with where it stands.
type query struct{ where, expr string }

// dashboardQueries are those of every panel and variable, with the variables filled in as Grafana would.
func dashboardQueries(t *testing.T) (all []query) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(repository(t), "deploy/grafana/dashboards/*.json"))
	if err != nil || len(files) != 4 {
		t.Fatalf("%d dashboards, %v", len(files), err)
	}
	fill := strings.NewReplacer("$__rate_interval", "20s", "$region", ".*", "$route", ".*", "$tenant", named)
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var d struct {
			UID, Title string
			Panels     []struct {
				Title   string
				Targets []struct{ Expr string }
			}
		}
		if err := json.Unmarshal(data, &d); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		if d.UID+".json" != filepath.Base(file) || d.Title == "" {
			t.Errorf("%s: uid %q, title %q", file, d.UID, d.Title)
		}
		for _, p := range d.Panels {
			for _, target := range p.Targets {
				all = append(all, query{d.Title + " / " + p.Title, fill.Replace(target.Expr)})
			}
		}
	}
	return all
}

var (
	braces   = regexp.MustCompile(`\{[^}]*\}`)
	grouping = regexp.MustCompile(`\b(by|without|on|ignoring|group_left|group_right) ?\([^)]*\)`)
	name     = regexp.MustCompile(`\b(partidor|http|db|go|process|target)_[a-z0-9_]+|\bpartidor:[a-z0-9_:]+`)
	selector = regexp.MustCompile(`\b(?:partidor_|partidor:|http_|db_|go_|process_)[a-z0-9_:]+(?:\{[^}]*\})?`)
)

// metricsIn are the names of metrics in an expression.
func metricsIn(expr string) []string {
	found := name.FindAllString(grouping.ReplaceAllString(braces.ReplaceAllString(expr, ""), ""), -1)
	slices.Sort(found)
	return slices.Compact(found)
}

// selectorsIn are the parts of an expression that pick series.
func selectorsIn(expr string) []string {
	return selector.FindAllString(grouping.ReplaceAllString(expr, ""), -1)
}

func read(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(repository(t), path))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
