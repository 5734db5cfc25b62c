package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"partidor.dev/partidor/shared/limit"
)

// Twenty seconds of a soak: every fault happens, the world recovers from each, nothing grows, no limit is exceeded.
func TestSoak(t *testing.T) {
	plot := filepath.Join(t.TempDir(), "soak.svg")
	var out bytes.Buffer
	s, err := demonstrate(t.Context(), options{
		duration: 20 * time.Second, cycle: time.Second, swing: 8 * time.Second, json: true, scale: 0.25, seed: 3, console: "127.0.0.1:0",
		soak: 4 * time.Second, plot: plot,
	}, &out)
	if err != nil {
		t.Fatal(err)
	}
	if s.Exceeded || len(s.Faults) < 2 {
		t.Errorf("exceeded %v, faults %v", s.Exceeded, s.Faults)
	}
	for _, a := range s.Tenants {
		if a.Admitted == 0 {
			t.Errorf("%s: nothing admitted", a.Tenant)
		}
	}
	drawn, err := os.ReadFile(plot)
	if err != nil || strings.Count(string(drawn), "<polyline") != len(series)+1 {
		t.Errorf("plot: %v\n%.300s", err, drawn)
	}
}

// What grows is named; what stays, or falls, is not.
func TestSoakVerdict(t *testing.T) {
	at := func(i int, heap float64) soakSample {
		return soakSample{Seconds: float64(i), HeapMB: heap, Goroutines: 300, Sockets: 80, Keys: 12}
	}
	flat, grown := &soak{faults: []soakFault{{}}}, &soak{faults: []soakFault{{}}}
	for i := range 12 {
		flat.samples = append(flat.samples, at(i, 50-float64(i)))
		grown.samples = append(grown.samples, at(i, 50+30*float64(i)))
	}
	if err := flat.verdict(); err != nil {
		t.Error(err)
	}
	if err := grown.verdict(); err == nil || !strings.Contains(err.Error(), "heap") || strings.Contains(err.Error(), "sockets") {
		t.Errorf("got %v", err)
	}
	flat.samples[3].Shares = limit.Whole + 1
	if err := flat.verdict(); err == nil || !strings.Contains(err.Error(), "after 3 s the shares of one key added up to 100.0001 %") {
		t.Errorf("got %v", err)
	}
	if err := (&soak{}).verdict(); err == nil {
		t.Error("no samples pass")
	}
}
