package main

import (
	"bytes"
	"encoding/json"
	"math"
	"testing"
	"time"

	"partidor.dev/partidor/shared/limit"
)

// A short demo ends by itself, admits from every tenant, keeps every limit, and never has more than the whole in force.
func TestDemoEndsByItselfAndKeepsTheLimits(t *testing.T) {
	var out bytes.Buffer
	s, err := demonstrate(t.Context(), options{
		duration: 6 * time.Second, cycle: time.Second, swing: 4 * time.Second, json: true, scale: 0.5, seed: 7, console: "127.0.0.1:0",
	}, &out)
	if err != nil {
		t.Fatal(err)
	}
	if out.Len() > 0 {
		t.Errorf("-json prints more than the summary: %s", &out)
	}
	if s.Exceeded || len(s.Tenants) != len(tenants) {
		t.Errorf("%+v", s)
	}
	for _, a := range s.Tenants {
		if a.Admitted == 0 || a.Excess != 0 || a.DeepestDraw > float64(a.Capacity) || a.Shares.Sum() > limit.Whole {
			t.Errorf("%+v", a)
		}
	}
	if err := s.print(&out, true); err != nil {
		t.Fatal(err)
	}
	var back summary
	if err := json.Unmarshal(out.Bytes(), &back); err != nil || len(back.Tenants) != len(tenants) {
		t.Errorf("summary is not what it says: %v\n%s", err, &out)
	}
}

// The traffic is 70 % in eu, then 20 %, and back, and never jumps.
func TestEUPartSwings(t *testing.T) {
	const swing = 60 * time.Second
	for at, want := range map[time.Duration]float64{0: 0.7, 14 * time.Second: 0.7, 20 * time.Second: 0.2, 40 * time.Second: 0.2, 50 * time.Second: 0.7, 59 * time.Second: 0.7} {
		if got := euPart(at, swing); math.Abs(got-want) > 1e-9 {
			t.Errorf("at %s %.2f, want %.2f", at, got, want)
		}
	}
	for at := time.Duration(0); at < 2*swing; at += 100 * time.Millisecond {
		if d := math.Abs(euPart(at+100*time.Millisecond, swing) - euPart(at, swing)); d > 0.011 {
			t.Errorf("jump of %.3f at %s", d, at)
		}
	}
}
