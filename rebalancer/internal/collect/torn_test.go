package collect

import (
	"testing"
	"time"

	"partidor.dev/partidor/shared/limit"
)

// Keys whose shares make no whole are counted, but only where every region has said what it uses, and only after a while.
func TestTornKeysAreCounted(t *testing.T) {
	whole, over, short, quiet := limit.Key{Tenant: "whole", Route: "r"}, limit.Key{Tenant: "over", Route: "r"},
		limit.Key{Tenant: "short", Route: "r"}, limit.Key{Tenant: "quiet", Route: "r"}
	shares := map[string]map[limit.Key]limit.Share{
		"eu": {whole: 700_000, over: 700_000, short: 600_000, quiet: 700_000},
		"us": {whole: 300_000, over: 300_001, short: 300_000, quiet: 900_000},
	}
	table, _ := testTable(Options{})
	gateways := map[string]*gateway{"eu": newGateway("eu", "1", 0), "us": newGateway("us", "1", 0)}
	judge := func(now time.Duration) {
		t.Helper()
		for region, g := range gateways {
			for k, share := range shares[region] {
				if k == quiet && region == "us" && now > 10*time.Second {
					continue // its share is old: nobody asks for it there
				}
				g.serve(k, 1, 0)
				u := g.counters[k]
				u.Share = share
				g.counters[k] = u
			}
			table.Usage(now, g.report(now))
		}
		table.Sweep(now)
	}
	for now := 5 * time.Second; now < tornAfter; now += 5 * time.Second {
		if judge(now); table.over+table.short != 0 {
			t.Fatalf("%d over, %d short after %s", table.over, table.short, now)
		}
	}
	for now := tornAfter; now < 3*tornAfter; now += 5 * time.Second {
		judge(now)
	}
	if table.over != 1 || table.short != 1 {
		t.Errorf("%d over, %d short, want one each", table.over, table.short)
	}
	shares["us"][over], shares["us"][short] = 300_000, 400_000
	if judge(3*tornAfter + 5*time.Second); table.over+table.short != 0 {
		t.Errorf("%d over, %d short once all are whole", table.over, table.short)
	}
}
