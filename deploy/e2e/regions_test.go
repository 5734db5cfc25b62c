package e2e

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"testing"
	"time"

	"partidor.dev/partidor/shared/limit"
	"partidor.dev/partidor/shared/testenv"
)

// TestTwoRegions is one deployment's day. The parts build on one another only in that they share it.
func TestTwoRegions(t *testing.T) {
	d := deploy(t)
	for _, part := range []struct {
		name string
		run  func(*testing.T, *deployment)
	}{
		{"three orders with curl", threeOrders},
		{"callers without a known key", unknownCallers},
		{"the default limit", defaultLimit},
		{"a flood is held to the limit", flood},
		{"a rule changed by SQL", ruleChange},
		{"the split follows the traffic", splitFollows},
		{"a traced request", tracedRequest},
		{"the trace of a cycle", tracedCycle},
		{"NATS and the rebalancer are killed", controlPlaneGone},
		{"a Redis is killed", redisGone},
	} {
		if !t.Run(part.name, func(t *testing.T) { part.run(t, d) }) {
			return // what follows would fail for the same reason
		}
	}
}

// Capacity 2, three orders, each to another gateway, one of them in the other region: the third is refused, and told truly
// when to come back. A limit this small is kept whole, at its home.
func threeOrders(t *testing.T, d *deployment) {
	eu, us := d.regions["eu"].gateways, d.regions["us"].gateways
	for i, want := range []struct {
		gateway   *gateway
		status    int
		remaining string
	}{{eu[0], http.StatusOK, "1"}, {us[0], http.StatusOK, "0"}, {eu[1], http.StatusTooManyRequests, "0"}} {
		resp := want.gateway.order(t, "curl")
		h := resp.Header
		if resp.StatusCode != want.status || h.Get("X-RateLimit-Limit") != "2" || h.Get("X-RateLimit-Remaining") != want.remaining {
			t.Errorf("order %d: %d, %v; want %d with %s remaining", i+1, resp.StatusCode, h, want.status, want.remaining)
		}
		if got := h.Get("RateLimit-Policy"); got != `"create-order";q=2;w=60` {
			t.Errorf("RateLimit-Policy %s", got)
		}
		wait, err := strconv.Atoi(h.Get("Retry-After"))
		if refused := want.status == http.StatusTooManyRequests; refused != (err == nil) || refused && (wait < 1 || wait > 31) {
			t.Errorf("order %d: Retry-After %q", i+1, h.Get("Retry-After"))
		}
	}
}

func unknownCallers(t *testing.T, d *deployment) {
	g := d.regions["us"].gateways[1]
	for name, tenant := range map[string]string{"no key": "", "unknown key": "nobody"} {
		resp := g.order(t, tenant)
		if resp.StatusCode != http.StatusUnauthorized || resp.Header.Get("Content-Type") != "application/problem+json" {
			t.Errorf("%s: %d %s", name, resp.StatusCode, resp.Header.Get("Content-Type"))
		}
	}
	if n, err := d.regions["us"].redis.Client().Exists(context.Background(), limit.Key{Tenant: "nobody", Route: route}.Redis()).Result(); err != nil || n != 0 {
		t.Errorf("an unknown caller has %d buckets, %v", n, err)
	}
}

func defaultLimit(t *testing.T, d *deployment) {
	resp := d.regions["eu"].gateways[0].order(t, "norule")
	if resp.StatusCode != http.StatusOK || resp.Header.Get("X-RateLimit-Limit") != "20" {
		t.Errorf("%d, limit %s; want 200, 20", resp.StatusCode, resp.Header.Get("X-RateLimit-Limit"))
	}
}

// Four gateways in two regions flooded at four times 100/s: together they admit what one bucket would have admitted of what
// reached them, within 3 %, and never more than capacity + rate × time in any interval.
func flood(t *testing.T, d *deployment) {
	c := d.send(t, "flood", 200, 100, map[string]float64{"eu": 200, "us": 200})
	wait(t, 10*time.Second)
	c.end()
	c.kept(t)
	v := d.verdict(t, "flood", 200, 100, c.start)
	if v.Fallback+v.Unable > 0 { // Redis was too slow for some: a machine that is busy
		c.only(t, http.StatusOK, http.StatusTooManyRequests, http.StatusServiceUnavailable)
		return
	}
	c.only(t, http.StatusOK, http.StatusTooManyRequests)
	if v.Efficiency < 0.97 {
		t.Errorf("under flood: %s", v)
	}
}

// wait lets real processes work for a while.
func wait(t *testing.T, d time.Duration) {
	t.Helper()
	select {
	case <-time.After(d):
	case <-t.Context().Done():
	}
}

// An UPDATE typed into psql is soon in force in both regions, by the event: the poll comes every 30 seconds.
func ruleChange(t *testing.T, d *deployment) {
	d.exec(t, `UPDATE rate_limit_rule SET capacity = 77 WHERE tenant_id = 'edit'`)
	testenv.Eventually(t, 15*time.Second, func() error { // half a poll
		for _, g := range d.gateways() {
			if got := g.order(t, "edit").Header.Get("X-RateLimit-Limit"); got != "77" {
				return fmt.Errorf("%s still says limit %s", g.url, got)
			}
		}
		return nil
	})
}

// Load that moves from 70/30 to 20/80 takes the split along within two cycles, in the ledger and in both Redis servers,
// and no bucket is refilled on the way.
func splitFollows(t *testing.T, d *deployment) {
	c := d.send(t, "swing", 200, 100, map[string]float64{"eu": 63, "us": 27})
	wait(t, 5*time.Second)
	c.turn(map[string]float64{"eu": 18, "us": 72})
	testenv.Eventually(t, 2*cycle+patient, func() error { // two cycles, after the first report of the new load
		var target limit.Share
		if err := d.db.QueryRow(t.Context(), `SELECT target_share FROM split WHERE tenant_id = 'swing' AND region = 'us'`).Scan(&target); err != nil {
			return fmt.Errorf("target of us in the ledger: %w", err)
		}
		eu, moved := d.regions["eu"].share(t, "swing")
		us, _ := d.regions["us"].share(t, "swing")
		if !moved || eu > 450_000 || us < 550_000 || target < 550_000 {
			return fmt.Errorf("shares are eu %d, us %d; target of us is %d", eu, us, target)
		}
		return nil
	})
	testenv.Eventually(t, patient, func() error { // a transfer in flight is in nobody's hands for a moment
		eu, _ := d.regions["eu"].share(t, "swing")
		us, _ := d.regions["us"].share(t, "swing")
		if eu+us != limit.Whole {
			return fmt.Errorf("shares eu %d + us %d are not the whole", eu, us)
		}
		return nil
	})
	c.end()
	c.kept(t)
	c.only(t, http.StatusOK, http.StatusTooManyRequests)
	var reasons int
	if err := d.db.QueryRow(t.Context(), `SELECT count(*) FROM split_history WHERE tenant_id = 'swing' AND reason <> ''`).Scan(&reasons); err != nil || reasons == 0 {
		t.Errorf("%d reasons in split_history, %v", reasons, err)
	}
}
