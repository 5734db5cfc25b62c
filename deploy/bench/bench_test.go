package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// One short round of everything: each subject decides, on a real Redis, and the report is whole. No rate is judged.
func TestRunMeasuresEverySubject(t *testing.T) {
	out, file := &bytes.Buffer{}, filepath.Join(t.TempDir(), "bench.json")
	o := options{round: 50 * time.Millisecond, rounds: 1, out: file, loads: []load{{100, 4}}}
	if err := run(t.Context(), out, o); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var r report
	if err := json.Unmarshal(b, &r); err != nil {
		t.Fatal(err)
	}
	if len(r.Results) != len(subjects()) {
		t.Errorf("%d results, want %d", len(r.Results), len(subjects()))
	}
	for _, x := range r.Results {
		if x.Decisions == 0 || x.P99 < x.P50 || x.ClientCPU <= 0 {
			t.Errorf("%s: %+v", x.Subject, x.sample)
		}
		local := x.Subject == "x/time/rate map"
		if calls := x.RedisCalls; (calls == 0) != local {
			t.Errorf("%s: %v Redis calls per decision", x.Subject, calls)
		}
		if !strings.Contains(out.String(), "| "+x.Subject+" |") {
			t.Errorf("%s is missing in the table", x.Subject)
		}
	}
}

func TestCompare(t *testing.T) {
	r := report{Results: []result{
		{"redis_rate", load{10_000, 128}, sample{PerSecond: 100, P99: 10, ClientCPU: 20, RedisCPU: 10}},
		{"partidor batched", load{10_000, 128}, sample{PerSecond: 299, P99: 5, ClientCPU: 5, RedisCPU: 5}},
	}}
	r.compare()
	got := map[string]bool{}
	for _, x := range r.Ratios {
		got[x.What] = x.Reached
	}
	want := map[string]bool{"rate": false, "p99": true, "CPU per decision": true}
	for what, reached := range want {
		if v, ok := got[what]; !ok || v != reached {
			t.Errorf("%s: reached %v (there: %v), want %v", what, v, ok, reached)
		}
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
