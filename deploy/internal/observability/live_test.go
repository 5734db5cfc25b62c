package observability

import (
	"bufio"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"partidor.dev/partidor/shared/testenv"
)

// onlyInAFault are series that a healthy deployment does not have, with the reason. What stands here is judged by promtool's
// tests and by the tests of the part that counts.
var onlyInAFault = map[string]string{
	`partidor_outcome="unable"`:           "decisions fail only without Redis and rules that say deny",
	`partidor_source="fallback"`:          "the local limiter decides only while Redis is away",
	`partidor_decisions_spared_total`:     "the kill switch is off",
	`partidor_collect_dropped_total`:      "nothing is dropped",
	`partidor_transfer_dropped_total`:     "nothing is dropped",
	`partidor_rules_faults_total`:         "no row is refused",
	`partidor_lease_fenced`:               "leases run only with three failure domains",
	`partidor_decision_log_dropped_total`: "no log of decisions is kept",
	`partidor_transfer_share_total`:       "counts from the first move of share",
}

func fault(expr string) bool {
	for series := range onlyInAFault {
		if strings.Contains(expr, series) {
			return true
		}
	}
	return false
}

// TestWhatOperatorsAskIsAnswered runs a deployment, has a real Prometheus scrape it with the shipped rules, and asks every query of
// every dashboard, every recording rule and everything that alerts look at: each must be understood, and have data.
func TestWhatOperatorsAskIsAnswered(t *testing.T) {
	s := newSet(t)
	p := testenv.StartPrometheus(t, s.scrapeConfig(t))
	s.traffic(t)

	queries := dashboardQueries(t)
	for _, r := range rules(t) {
		if r.Record != "" {
			queries = append(queries, query{"rule " + r.Record, r.Record})
			continue
		}
		queries = append(queries, query{"alert " + r.Alert, "count(" + r.Expr + ") or vector(0)"})
		for _, part := range selectorsIn(r.Expr) {
			queries = append(queries, query{"alert " + r.Alert, part})
		}
	}
	open := queries
	testenv.Eventually(t, patient, func() error {
		var missing []error
		rest := open[:0:0]
		for _, q := range open {
			samples, err := p.Query(q.expr)
			switch {
			case err != nil:
				t.Fatalf("%s: %v", q.where, err) // it will not be understood later either
			case len(samples) == 0 && !fault(q.expr):
				rest = append(rest, q)
				missing = append(missing, fmt.Errorf("%s: no data: %s", q.where, q.expr))
			}
		}
		open = rest
		return errors.Join(missing...)
	})
	s.judgeSeries(t)
	judgeExemplars(t, p)
}

// scrapeConfig is Prometheus' configuration for this deployment: the shipped rules, evaluated more often.
func (s *set) scrapeConfig(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	often := regexp.MustCompile(`interval: \d+s`).ReplaceAllString(read(t, rulesFile), "interval: 1s")
	var targets []string
	for _, p := range s.processes() {
		targets = append(targets, fmt.Sprintf("%q", strings.TrimPrefix(p.admin, "http://")))
	}
	config := fmt.Sprintf(`
global: {scrape_interval: 1s, evaluation_interval: 1s}
rule_files: [rules.yaml]
scrape_configs:
  - job_name: partidor
    static_configs: [{targets: [%s]}]
`, strings.Join(targets, ", "))
	for name, text := range map[string]string{"rules.yaml": often, "prometheus.yaml": config} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(dir, "prometheus.yaml")
}

func (s *set) processes() []*process {
	return []*process{s.gateways["eu"], s.gateways["us"], s.rebalancer}
}

// judgeSeries compares what is scraped with the handbook's table: nothing undocumented, no label that is not named, and the
// region on every series of a gateway.
func (s *set) judgeSeries(t *testing.T) {
	t.Helper()
	rows := documented(t)
	line := regexp.MustCompile(`^([a-z_0-9]+)(?:\{(.*)\})? [^ ]+$`)
	label := regexp.MustCompile(`([a-z_]+)="(?:[^"\\]|\\.)*"`)
	for _, p := range s.processes() {
		for lines := bufio.NewScanner(strings.NewReader(p.scrape(t))); lines.Scan(); {
			m := line.FindStringSubmatch(lines.Text())
			if m == nil || !strings.HasPrefix(m[1], "partidor_") {
				continue // the libraries' own follow their own conventions
			}
			base := m[1]
			if _, ok := rows[base]; !ok {
				base = regexp.MustCompile(`_(bucket|count|sum)$`).ReplaceAllString(base, "")
			}
			allowed, ok := rows[base]
			if !ok {
				t.Errorf("%s is scraped and not documented", m[1])
				continue
			}
			var has []string
			for _, l := range label.FindAllStringSubmatch(m[2], -1) {
				has = append(has, l[1])
				if l[1] != "le" && l[1] != "partidor_region" && !slices.Contains(allowed, l[1]) {
					t.Errorf("%s has a label %s, which is not documented", base, l[1])
				}
			}
			if p.region != "" && !slices.Contains(has, "partidor_region") {
				t.Errorf("%s does not say in which region", m[1])
			}
		}
	}
}

// judgeExemplars: a slow request leads to its trace.
func judgeExemplars(t *testing.T, p *testenv.Prometheus) {
	t.Helper()
	testenv.Eventually(t, patient, func() error {
		var answer struct {
			Data []struct {
				Exemplars []struct{ Labels map[string]string }
			}
		}
		err := p.Get("/api/v1/query_exemplars", url.Values{"query": {"http_server_request_duration_seconds_bucket"}, "start": {"0"}, "end": {"9999999999"}}, &answer)
		if err != nil {
			return err
		}
		for _, series := range answer.Data {
			for _, e := range series.Exemplars {
				if len(e.Labels["trace_id"]) == 32 && len(e.Labels["span_id"]) == 16 {
					return nil
				}
			}
		}
		return fmt.Errorf("no exemplar with a trace among %d series", len(answer.Data))
	})
}
