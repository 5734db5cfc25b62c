package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// One hurried run of everything: each subject and front answers, on real Redis, and the report is whole. No rate is judged.
func TestRunMeasuresEverything(t *testing.T) {
	out, dir := &bytes.Buffer{}, t.TempDir()
	o := defaults
	o.hurry()
	o.out, o.page = filepath.Join(dir, "bench.json"), filepath.Join(dir, "bench.md")
	o.sections = "limiter,shapes,cluster,proxies,pace,fleet"
	if err := run(t.Context(), out, o); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(o.out)
	if err != nil {
		t.Fatal(err)
	}
	var r report
	if err := json.Unmarshal(b, &r); err != nil {
		t.Fatal(err)
	}
	shaped := 0
	for _, sub := range subjects() {
		if sub.refuses {
			shaped += 2
		}
		if sub.clusters {
			shaped++
		}
		if !strings.Contains(out.String(), "| "+sub.name+" |") {
			t.Errorf("%s is missing in the table", sub.name)
		}
	}
	if want := len(subjects()) + shaped; len(r.Results) != want {
		t.Errorf("%d results, want %d", len(r.Results), want)
	}
	for _, x := range r.Results {
		if x.Decisions == 0 || x.P99 < x.P50 || x.ClientCPU <= 0 {
			t.Errorf("%s: %+v", x.Subject, x.sample)
		}
		if local := x.Subject == "x/time/rate map"; (x.RedisCalls == 0) != local {
			t.Errorf("%s: %v Redis calls per decision", x.Subject, x.RedisCalls)
		}
		if x.Shape == refusing && x.Refused == 0 || x.Shape != refusing && x.Refused != 0 {
			t.Errorf("%s %s: %v refused", x.Subject, x.Shape, x.Refused)
		}
	}
	if len(r.Proxies) != 6 || len(r.Paced) != 9 || len(r.Fleet) != 2*fleetSize {
		t.Errorf("%d fronts, %d paced, %d of a fleet", len(r.Proxies), len(r.Paced), len(r.Fleet))
	}
	for _, x := range append(r.Proxies, r.Fleet...) {
		if x.Requests == 0 {
			t.Errorf("%s: no requests", x.Front)
		}
	}
	page, err := os.ReadFile(o.page)
	if err != nil || !bytes.Equal(page, out.Bytes()) {
		t.Errorf("the page differs from what was printed: %v", err)
	}
}

func TestJudge(t *testing.T) {
	l := load{Keys: 10_000, Callers: 128}
	s := func(rate float64, p99 time.Duration, cpu float64) sample {
		return sample{PerSecond: rate, P99: p99, ClientCPU: cpu / 2, RedisCPU: cpu / 2}
	}
	r := report{
		Results: []result{
			{Subject: peer, load: l, Rounds: []sample{s(100, 10, 30), s(10, 10, 30), s(100, 10, 30)}},
			{Subject: ours, load: l, Rounds: []sample{s(299, 5, 10), s(29, 5, 10), s(290, 6, 12)}},
		},
		Parts: []part{{Name: "Ingest", Values: map[string]float64{"keys/cpu-s": 200_000}}, {Name: "Build", Values: map[string]float64{"MB": 200.1}}},
	}
	r.judge()
	got := map[string]bool{}
	for _, x := range r.Targets {
		what, _, _ := strings.Cut(x.What, ",")
		got[what] = x.Reached
	}
	want := map[string]bool{"rate": false, "p99": true, "CPU per decision": true, "usage ingest": true, "snapshot of 500": false}
	for what, reached := range want {
		if v, ok := got[what]; !ok || v != reached {
			t.Errorf("%s: reached %v (there: %v), want %v", what, v, ok, reached)
		}
	}
}

func TestNeeds(t *testing.T) {
	// 50,000/s × 48 µs = 2.4 cores of a gateway, × 6 µs = 0.3 of a Redis core; 1,000,000/s is twenty times that.
	for _, c := range []struct {
		load            float64
		gateways, nodes int
	}{{50_000, 1, 1}, {1_000_000, 20, 10}} {
		if n := needs("", 48, 6, c.load); n.gateways != c.gateways || n.nodes != c.nodes {
			t.Errorf("%v/s: %d gateways and %d nodes, want %d and %d", c.load, n.gateways, n.nodes, c.gateways, c.nodes)
		}
	}
}

// Every row of the capacity page follows from its own figures.
func TestCapacityPage(t *testing.T) {
	page, err := os.ReadFile("../docs/capacity.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := 0
	for line := range strings.Lines(string(page)) {
		f := strings.Split(line, "|")
		if len(f) != 8 {
			continue
		}
		var v [5]float64
		bad := false
		for i, at := range []int{1, 3, 4, 5, 6} {
			v[i], err = strconv.ParseFloat(strings.TrimSpace(f[at]), 64)
			bad = bad || err != nil
		}
		if bad {
			continue // a heading
		}
		rows++
		if n := needs("", v[1], v[2], v[0]); float64(n.gateways) != v[3] || float64(n.nodes) != v[4] {
			t.Errorf("%s: the model says %d and %d", strings.TrimSpace(line), n.gateways, n.nodes)
		}
	}
	if rows != 2*len(planned) {
		t.Errorf("%d rows, want %d", rows, 2*len(planned))
	}
}

// The page takes up a report, and says what is missing.
func TestPageIsRewritten(t *testing.T) {
	dir := t.TempDir()
	page, from := filepath.Join(dir, "capacity.md"), filepath.Join(dir, "bench.json")
	write := func(path, text string) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(page, "before\n"+pageBegin+"old\n"+pageEnd+"after\n")
	r := report{
		Proxies: []proxyResult{{Front: limitedFront, proxySample: proxySample{CPU: 150.04}}, {Front: aheadFront, proxySample: proxySample{CPU: 100, RedisCPU: 4}}},
		Results: []result{{Subject: ours, load: busiest, sample: sample{RedisCPU: 6}}},
	}
	data, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	write(from, string(data))
	if err := rewritePage(page, from); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"before\n" + pageBegin + "Measured", "| 50000 | every decision asks Redis | 150.0 | 6.00 | 4 | 1 |", "= 7.50 s of CPU", pageEnd + "after\n"} {
		if !strings.Contains(string(got), want) {
			t.Errorf("%q is missing in\n%s", want, got)
		}
	}
	write(from, "{}")
	if err := rewritePage(page, from); err == nil {
		t.Error("a report without the figures is taken")
	}
	write(page, "nothing")
	write(from, string(data))
	if err := rewritePage(page, from); err == nil {
		t.Error("a page without a place for figures is taken")
	}
}

func TestParseParts(t *testing.T) {
	got := parseParts("p", "goos: linux\nBenchmarkLookup/hot/own-2   \t 3330\t 307120 ns/op\t 65.05 median-ns/look-up\nPASS\n")
	if len(got) != 1 || got[0].Name != "Lookup/hot/own" || got[0].Values["median-ns/look-up"] != 65.05 || got[0].Values["ns/op"] != 307120 {
		t.Errorf("%+v", got)
	}
}

func TestField(t *testing.T) {
	info := "# Commandstats\r\ncmdstat_evalsha:calls=12,usec=5\r\nused_cpu_user:1.5\r\n"
	if got := field(info, "cmdstat_evalsha:calls="); got != 12 {
		t.Errorf("got %v", got)
	}
	if got := field(info, "used_cpu_user:"); got != 1.5 {
		t.Errorf("got %v", got)
	}
	if got := field(info, "cmdstat_ping:calls="); got != 0 {
		t.Errorf("got %v", got)
	}
}
