package app_test

import (
	"net/http"
	"runtime"
	"strconv"
	"testing"
	"time"
)

// propagation is the documented time in which a change of rules takes effect while NATS or a primary is at hand.
const propagation = 2 * time.Second

// The rule of an exhausted caller is raised: the new rate and q apply within 2 s (request-path 79). The ledger is a primary,
// so the gateway hears of it without any rebalancer.
func TestRaisedRuleReachesAnExhaustedCaller(t *testing.T) {
	s := newSet(t)
	s.shop(t, "shop-a")
	s.rule(t, "shop-a", 1, 1, 3600)
	g := start(t, s.config)
	g.post("shop-a")
	if r := g.post("shop-a"); r.StatusCode != http.StatusTooManyRequests {
		t.Fatalf("status %d, want 429", r.StatusCode)
	}
	s.rule(t, "shop-a", 100, 100, 1)
	eventually(t, propagation, "the raised rule admits", func() bool {
		r := g.post("shop-a")
		return r.StatusCode == http.StatusOK && r.Header.Get("X-RateLimit-Limit") == "100"
	})
}

// A rule is lowered: the next call within the propagation time sees the new limit, and no more left than it allows
// (request-path 80, limits 2).
func TestLoweredRuleClampsWhatIsStored(t *testing.T) {
	s := newSet(t)
	s.shop(t, "shop-a")
	s.rule(t, "shop-a", 5_000_000, 100, 60)
	g := start(t, s.config)
	g.post("shop-a")
	g.post("shop-a")
	s.rule(t, "shop-a", 10, 10, 60)
	var r *http.Response
	eventually(t, propagation, "the lowered rule is in force", func() bool {
		r = g.post("shop-a")
		return r.Header.Get("X-RateLimit-Limit") == "10"
	})
	if left, err := strconv.Atoi(r.Header.Get("X-RateLimit-Remaining")); err != nil || left > 9 {
		t.Errorf("%d left after the lowered rule's first call, want at most 9", left)
	}
}

// A rule is deleted and created again: tokens belong to the key, they are kept and clamped, never refilled
// (request-path 83).
func TestRuleDeletedAndCreatedAgain(t *testing.T) {
	s := newSet(t)
	s.shop(t, "shop-a")
	s.rule(t, "shop-a", 3, 1, 3600)
	g := start(t, s.config)
	for range 4 {
		g.post("shop-a")
	}
	limitIs := func(n string) func() bool {
		return func() bool { return g.post("shop-a").Header.Get("X-RateLimit-Limit") == n }
	}
	s.exec(t, `DELETE FROM rate_limit_rule`)
	s.exec(t, `INSERT INTO rate_limit_rule (tenant_id, route_id, capacity, refill_per_second, refill_period_seconds) VALUES ('*', '*', 7, 1, 3600)`)
	eventually(t, propagation, "the next match is in force", limitIs("7"))
	s.rule(t, "shop-a", 5, 1, 3600)
	eventually(t, propagation, "the new rule is in force", limitIs("5"))
	if r := g.post("shop-a"); r.StatusCode != http.StatusTooManyRequests {
		t.Errorf("status %d after the rule was created again, want 429: nothing is refilled", r.StatusCode)
	}
}

// A thousand changes leave goroutines and connections as they were (limits 82).
func TestThousandReloads(t *testing.T) {
	s := newSet(t)
	s.shop(t, "shop-a")
	s.rule(t, "shop-a", 1_000_000, 1_000_000, 1)
	g := start(t, s.config)
	g.post("shop-a")
	connections := func() (n int) {
		if err := s.ledger.QueryRow(t.Context(), `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()`).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	change := func(n int) {
		for i := range n {
			s.rule(t, "shop-a", 1_000_000+i, 1_000_000, 1)
		}
		eventually(t, propagation, "the last change is in force", func() bool {
			return g.post("shop-a").Header.Get("X-RateLimit-Limit") == strconv.Itoa(1_000_000+n-1)
		})
	}
	change(50)
	goroutines, conns := runtime.NumGoroutine(), connections()
	change(1000)
	eventually(t, 5*time.Second, "goroutines and connections are as before", func() bool {
		return runtime.NumGoroutine() <= goroutines+2 && connections() <= conns
	})
}

// The same while Redis is away: the local limiter goes by the new rule (request-path 79).
func TestRaisedRuleInFallback(t *testing.T) {
	s := newSet(t)
	s.shop(t, "shop-a")
	s.rule(t, "shop-a", 1, 1, 3600)
	g := start(t, s.config)
	g.post("shop-a")
	s.redis.Kill()
	eventually(t, 10*time.Second, "the local limiter decides", func() bool {
		g.post("shop-a")
		_, ready := g.ready()
		return ready.Status == "degraded"
	})
	if r := g.post("shop-a"); r.StatusCode == http.StatusOK {
		t.Fatalf("status %d before the rule is raised, want a refusal", r.StatusCode)
	}
	s.rule(t, "shop-a", 100, 100, 1)
	eventually(t, propagation, "the raised rule admits", func() bool {
		r := g.post("shop-a")
		return r.StatusCode == http.StatusOK && r.Header.Get("X-RateLimit-Limit") == "100"
	})
}

// The kill switch: while it is on nothing is refused, and back again (DESIGN §8, shadow on|off).
func TestKillSwitch(t *testing.T) {
	s := newSet(t)
	s.shop(t, "shop-a")
	s.rule(t, "shop-a", 1, 1, 3600)
	g := start(t, s.config)
	status := func(want int) func() bool {
		return func() bool { return g.post("shop-a").StatusCode == want }
	}
	eventually(t, propagation, "drained", status(http.StatusTooManyRequests))
	s.exec(t, `INSERT INTO parameter (name, value) VALUES ('shadow', 'true')`)
	eventually(t, propagation, "nothing is refused", status(http.StatusOK))
	s.exec(t, `DELETE FROM parameter WHERE name = 'shadow'`)
	eventually(t, propagation, "refused again", status(http.StatusTooManyRequests))
}
