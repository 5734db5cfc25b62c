package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"partidor.dev/partidor/shared/limit"
)

// TestRegionsFarApart: three regions with 80 ms between them, and what is hard for a limit that they share. The traffic of all
// scenarios runs at once, each for a tenant of its own; then the decision logs of all gateways are merged and every interval of
// every limit is judged.
func TestRegionsFarApart(t *testing.T) {
	const length = 64 * time.Second // an equal flood is shared equally once the demand of a quarter of a minute says so, by two cycles
	flows := []flow{
		// Small everywhere, then all of it in the region with the smallest share.
		{"crowd", route, 200, 100, func(region string, at time.Duration) float64 {
			switch {
			case at < length/5:
				return 20
			case region == "ap":
				return 150
			}
			return 0
		}},
		{"pingpong", route, 200, 100, func(region string, at time.Duration) float64 {
			if [...]string{"eu", "ap", "us"}[int(at/(4*time.Second))%3] == region {
				return 90
			}
			return 0
		}},
		{"second", route, 1, 1, func(string, time.Duration) float64 { return 1 }},
		{"minute", route, 5, 5.0 / 60, func(string, time.Duration) float64 { return 0.3 }},
		{"pairs", "bulk-order", 5, 5.0 / 60, func(string, time.Duration) float64 { return 0.2 }},
		// Case limits 28.
		{"equal", route, 100, 100, func(region string, at time.Duration) float64 {
			switch {
			case region == "ap":
				return 0
			case at > length/3:
				return 100
			case region == "eu":
				return 90
			}
			return 10
		}},
	}
	w := newWorld(t, []site{
		{name: "eu", base: 500_000, gateways: 2}, {name: "us", base: 300_000, gateways: 1}, {name: "ap", base: 200_000, gateways: 1},
	}, func(w *world) {
		w.exec(t, `INSERT INTO rate_limit_rule (tenant_id, route_id, capacity, refill_per_second, refill_period_seconds) VALUES
			('crowd', 'create-order', 200, 100, 1), ('pingpong', 'create-order', 200, 100, 1), ('equal', 'create-order', 100, 100, 1),
			('second', 'create-order', 1, 1, 1), ('minute', 'create-order', 5, 5, 60), ('pairs', 'bulk-order', 5, 5, 60)`)
		w.tenants(t, "crowd", "pingpong", "equal", "second", "minute", "pairs")
	})
	f := w.begin(t, 1, flows...)
	shares := w.watch(t, "equal", "eu", "us")
	wait(t, length)
	f.end()
	series := shares()
	t.Logf("%.0f keys spoken of in messages, %d keys, %s", w.messages(), len(flows), length)
	v := w.verdicts(t, f)
	// Generous, for machines that are slow: what a quiet one reaches stands in the log.
	for tenant, least := range map[string]float64{"crowd": 0.6, "pingpong": 0.5, "equal": 0.6} {
		if v[tenant].Efficiency < least {
			t.Errorf("%s: efficiency %.3f, want at least %.2f", tenant, v[tenant].Efficiency, least)
		}
	}
	for _, tenant := range []string{"second", "minute", "pairs"} {
		if v[tenant].Admitted == 0 {
			t.Errorf("%s: nothing was admitted", tenant)
		}
	}
	meet(t, series)
}

// meet judges the shares of two regions that are offered the same after one of them had nearly all: they end as equals, and turn
// back at most once by more than ten points on the way there.
func meet(t *testing.T, series [][]limit.Share) {
	t.Helper()
	const point = limit.Whole / 100
	var log []string
	var extreme, direction limit.Share
	reversals := 0
	for i, now := range series {
		difference := now[0] - now[1]
		if i%4 == 0 {
			log = append(log, fmt.Sprintf("%d/%d", now[0]/point, now[1]/point))
		}
		switch step := difference - extreme; {
		case i == 0:
			extreme = difference
		case step*direction > 0:
			extreme = difference
		case step > 20*point || step < -20*point: // of a difference: ten of a share
			if direction != 0 {
				reversals++
			}
			extreme, direction = difference, step/max(step, -step)
		}
	}
	t.Logf("equal: shares of eu and us, %%, every second: %s", strings.Join(log, " "))
	if len(series) == 0 {
		t.Fatal("equal: the shares never moved")
	}
	last := series[len(series)-1]
	if difference := last[0] - last[1]; difference > 30*point || difference < -30*point {
		t.Errorf("equal: shares end as %d and %d", last[0], last[1])
	}
	if reversals > 2 { // up to 90/10, back to equals, and once more
		t.Errorf("equal: %d reversals", reversals)
	}
}
