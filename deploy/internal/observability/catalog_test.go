package observability

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// instrument is a metric as the code declares it.
type instrument struct {
	name, kind, unit, about, file string
}

// prometheus is what the exporter calls it.
func (i *instrument) prometheus() string {
	n := strings.ReplaceAll(i.name, ".", "_")
	switch {
	case i.unit == "s":
		n += "_seconds"
	case i.unit == "By":
		n += "_bytes"
	case i.unit == "1" && i.kind == "gauge":
		n += "_ratio"
	}
	if i.kind == "counter" {
		n += "_total"
	}
	return n
}

var (
	metricName = regexp.MustCompile(`^(partidor|http|db)\.[a-z_.]+$`)
	kinds      = []string{"updowncounter", "counter", "histogram", "gauge"}
)

// instruments reads the declarations off the code: calls of something with counter, gauge or histogram in its name, whose
// first argument is a metric's name.
func instruments(t *testing.T) (all []instrument) {
	t.Helper()
	root := repository(t)
	for _, module := range []string{"gateway", "rebalancer", "shared"} {
		err := filepath.WalkDir(filepath.Join(root, module), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			ast.Inspect(file, func(n ast.Node) bool {
				if call, ok := n.(*ast.CallExpr); ok {
					if i, ok := declared(call); ok {
						i.file, _ = filepath.Rel(root, path)
						all = append(all, i)
					}
				}
				return true
			})
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return all
}

func declared(call *ast.CallExpr) (i instrument, ok bool) {
	if len(call.Args) == 0 {
		return i, false
	}
	i.name = text(call.Args[0])
	called := strings.ToLower(nameOf(call.Fun))
	for _, kind := range kinds {
		if strings.HasSuffix(called, kind) {
			i.kind = kind
			break
		}
	}
	if i.kind == "" || !metricName.MatchString(i.name) {
		return i, false
	}
	for n, arg := range call.Args[1:] {
		option, isCall := arg.(*ast.CallExpr)
		switch {
		case isCall && nameOf(option.Fun) == "WithUnit":
			i.unit = text(option.Args[0])
		case isCall && nameOf(option.Fun) == "WithDescription":
			i.about = text(option.Args[0])
		case n == 0 && text(arg) != "":
			i.unit = text(arg)
		case n == 1 && text(arg) != "":
			i.about = text(arg)
		}
	}
	return i, true
}

func nameOf(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return e.Sel.Name
	}
	return ""
}

func text(e ast.Expr) string {
	if lit, ok := e.(*ast.BasicLit); ok && lit.Kind == token.STRING {
		s, _ := strconv.Unquote(lit.Value)
		return s
	}
	return ""
}

// Every metric says what it counts, and in which unit, in a sentence; a name stands for one thing.
func TestMetricsFollowTheConventions(t *testing.T) {
	units := regexp.MustCompile(`^(s|By|1|\{[a-z]+\})$`)
	byName := map[string]instrument{}
	for _, i := range instruments(t) {
		if !units.MatchString(i.unit) {
			t.Errorf("%s: %s has unit %q", i.file, i.name, i.unit)
		}
		if !strings.HasSuffix(i.about, ".") || i.about[:1] == strings.ToLower(i.about[:1]) && i.about[0] > '9' {
			t.Errorf("%s: the description of %s is no sentence: %q", i.file, i.name, i.about)
		}
		if strings.HasSuffix(i.name, ".total") || strings.Contains(i.name, "seconds") {
			t.Errorf("%s: %s says what its kind and unit say", i.file, i.name)
		}
		if other, ok := byName[i.name]; ok && (other.kind != i.kind || other.unit != i.unit) {
			t.Errorf("%s is one thing in %s and another in %s", i.name, i.file, other.file)
		}
		byName[i.name] = i
	}
	if len(byName) < 50 {
		t.Errorf("only %d metrics found", len(byName))
	}
}

// documented are the rows of the table of metrics: name to labels.
func documented(t *testing.T) map[string][]string {
	t.Helper()
	row := regexp.MustCompile("(?m)^\\| `([a-z]+_[a-z_]+)` \\| ([^|]*) \\|")
	rows := map[string][]string{}
	for _, m := range row.FindAllStringSubmatch(read(t, "deploy/docs/observability.md"), -1) {
		labels := regexp.MustCompile("`([a-z_]+)`").FindAllStringSubmatch(m[2], -1)
		rows[m[1]] = nil
		for _, l := range labels {
			rows[m[1]] = append(rows[m[1]], l[1])
		}
	}
	return rows
}

// The handbook's table has every metric that the code declares, and no other.
func TestMetricsAreDocumented(t *testing.T) {
	rows := documented(t)
	known := map[string]bool{}
	for _, i := range instruments(t) {
		known[i.prometheus()] = true
		if _, ok := rows[i.prometheus()]; !ok {
			t.Errorf("%s (%s) is not in deploy/docs/observability.md", i.prometheus(), i.file)
		}
	}
	for name := range rows {
		if !known[name] {
			t.Errorf("deploy/docs/observability.md has %s, which nobody counts", name)
		}
	}
}

// Rules, dashboards, runbooks and handbooks speak only of metrics that exist.
func TestMetricsThatAreNamedExist(t *testing.T) {
	known := map[string]bool{}
	for _, i := range instruments(t) {
		known[i.prometheus()] = true
	}
	for _, r := range rules(t) {
		known[r.Record] = true
	}
	check := func(where, expr string) {
		for _, m := range metricsIn(expr) {
			base := regexp.MustCompile(`_(bucket|count|sum)$`).ReplaceAllString(m, "")
			if !known[m] && !known[base] && !strings.HasPrefix(m, "go_") && !strings.HasPrefix(m, "process_") {
				t.Errorf("%s: there is no %s", where, m)
			}
		}
	}
	for _, r := range rules(t) {
		check(r.Record+r.Alert, r.Expr)
	}
	for _, q := range dashboardQueries(t) {
		check(q.where, q.expr)
	}
	quoted := regexp.MustCompile("`[^`]+`")
	for _, document := range []string{"runbooks/alerts.md", "docs/operating.md", "docs/gateway.md", "docs/observability.md"} {
		for _, q := range quoted.FindAllString(read(t, "deploy/"+document), -1) {
			if !slices.Contains(labels, strings.Trim(q, "`")) {
				check(document, strings.Trim(q, "`"))
			}
		}
	}
}

// labels that documents name by themselves, and what else looks like a metric and is none.
var labels = []string{
	"partidor_region", "partidor_route", "partidor_tenant", "partidor_outcome", "partidor_source", "partidor_result", "partidor_reason",
	"partidor_kind", "partidor_state", "partidor_cause", "partidor_operation", "partidor_verdict", "partidor_signal",
	"partidor_gateway", "partidor_operator", "partidor_rebalancer",
	"http_request_method", "http_response_status_code", "http_route", "db_system_name", "db_operation_name",
}
