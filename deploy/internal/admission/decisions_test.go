package admission

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

var midnight = time.Date(2026, 11, 30, 0, 0, 0, 0, time.UTC)

// decisions makes n at once, each of a token, decided ms after midnight within a millisecond.
func decisions(n int, ms int, instance, outcome, source string) (all []Decision) {
	for range n {
		all = append(all, Decision{
			Time: midnight.Add(time.Duration(ms) * time.Millisecond), TookMicros: 1000, Instance: instance, Cost: 1, Outcome: outcome, Source: source, Share: 500_000,
		})
	}
	return all
}

func TestJudge(t *testing.T) {
	const capacity, rate = 10, 10
	for _, tc := range []struct {
		name string
		all  [][]Decision
		want Verdict
	}{
		{"nothing", nil, Verdict{}},
		{"a burst and its refill", [][]Decision{
			decisions(6, 0, "eu-1", "allowed", "redis"), decisions(4, 1, "us-1", "allowed", "redis"), decisions(2, 2, "us-1", "refused", "redis"),
			decisions(5, 502, "us-1", "allowed", "home"),
		}, Verdict{Asked: 17, Admitted: 15, Refused: 2, Efficiency: 1}},
		{"three too many, from two regions", [][]Decision{
			decisions(6, 0, "eu-1", "allowed", "redis"), decisions(7, 0, "us-1", "allowed", "redis"),
		}, Verdict{Asked: 13, Admitted: 13, Excess: 3, Efficiency: 1.3}},
		{"a slice by itself is within the bound", [][]Decision{
			decisions(10, 0, "eu-1", "allowed", "redis"), decisions(5, 1, "us-1", "allowed", "fallback"), decisions(1, 2, "us-1", "unable", "fallback"),
		}, Verdict{Asked: 16, Admitted: 15, Fallback: 5, Unable: 1, Efficiency: 1.5}},
		{"more than a slice by itself is not", [][]Decision{
			decisions(10, 0, "eu-1", "allowed", "redis"), decisions(7, 0, "us-1", "allowed", "fallback"),
		}, Verdict{Asked: 17, Admitted: 17, Fallback: 7, Beyond: 2, Efficiency: 1.7}},
		{"its slice refills while it is alone", [][]Decision{
			decisions(5, 0, "us-1", "allowed", "fallback"), decisions(2, 401, "us-1", "allowed", "fallback"),
		}, Verdict{Asked: 7, Admitted: 7, Fallback: 7, Efficiency: 1}},
		{"refused while the world had room", [][]Decision{
			decisions(3, 0, "eu-1", "allowed", "redis"), decisions(1, 5, "eu-1", "refused", "redis"),
		}, Verdict{Asked: 4, Admitted: 3, Refused: 1, Efficiency: 0.75, Needless: 0.25}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var all []Decision
			for _, some := range tc.all {
				all = append(all, some...)
			}
			got := Judge(capacity, rate, all)
			for _, x := range []*float64{&got.Excess, &got.Beyond} { // a millisecond is the resolution
				*x = math.Round(*x*10) / 10
			}
			if got != tc.want {
				t.Errorf("%v, want %v", got, tc.want)
			}
		})
	}
}

func TestReadLogs(t *testing.T) {
	const early = `{"time":"2026-11-30T00:00:00.000000001Z","took_us":12,"region":"eu","instance":"eu-1","tenant":"a","route":"b","cost":2,"outcome":"allowed","source":"redis","limit":"b","share":7}` + "\n"
	late := strings.NewReplacer("000000001Z", "5Z", "eu", "us").Replace(early)
	write := func(text string) string {
		path := filepath.Join(t.TempDir(), "decisions")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	got, err := ReadLogs(write(late), write(early+early[:40]))
	if err != nil || len(got) != 2 || got[0].Region != "eu" || got[0].TookMicros != 12 || got[0].Cost != 2 || got[1].Instance != "us-1" {
		t.Errorf("%+v, %v", got, err)
	}
	path := write(early + early[:40] + "\n" + early)
	if _, err := ReadLogs(path); err == nil || !strings.Contains(err.Error(), path+":2:") {
		t.Errorf("a torn line in the middle: %v", err)
	}
}
