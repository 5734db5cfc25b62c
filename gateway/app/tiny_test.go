package app_test

import (
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"partidor.dev/partidor/shared/testenv"
	"partidor.dev/partidor/shared/wire"
)

// Three every twelve seconds over two regions: too small to divide, so all of it sits in eu and us consumes there; then, on the
// rebalancer's word, in us, and eu consumes there. However it moves, no more than the limit is admitted.
func TestTinyLimitOverTwoRegions(t *testing.T) {
	s := newSet(t)
	s.shop(t, "shop-a")
	s.exec(t, `INSERT INTO rate_limit_rule (tenant_id, route_id, capacity, refill_per_second, refill_period_seconds) VALUES ('shop-a', 'create-order', 3, 3, 12)`)
	s.exec(t, `INSERT INTO region (name, base_share) VALUES ('eu', 700000), ('us', 300000)`)
	servers := map[string]*testenv.Redis{"eu": s.redis, "us": testenv.StartRedis(t)}
	gateways := map[string]*gateway{}
	for region, redis := range servers {
		config := strings.Replace(s.config, s.redis.Addr, redis.Addr, 1)
		gateways[region] = start(t, config+"\nregion: "+region+"\ninstance: "+region+"-1\nexchange: {home_budget: 2s}\n")
	}
	began := time.Now()
	admitted := 0
	post := func(region string) *http.Response {
		r := gateways[region].post("shop-a")
		if r.StatusCode == http.StatusOK {
			admitted++
		}
		return r
	}
	for i, region := range []string{"us", "eu", "us"} {
		if r := post(region); r.StatusCode != http.StatusOK || r.Header.Get("X-RateLimit-Limit") != "3" {
			t.Errorf("request %d, in %s: %d, %v", i, region, r.StatusCode, r.Header)
		}
	}
	for _, region := range []string{"us", "eu", "us"} {
		r := post(region)
		if wait, err := strconv.Atoi(r.Header.Get("Retry-After")); r.StatusCode != http.StatusTooManyRequests || err != nil || wait < 1 || wait > 4 {
			t.Errorf("over the limit in %s: %d, come back in %q", region, r.StatusCode, r.Header.Get("Retry-After"))
		}
	}

	conn := s.nats.Conn(t)
	advice := wire.Advice{Header: wire.Header{Region: "control", Instance: "rebalancer", Started: 1}, Term: 1, Moves: []wire.Move{{
		Tenant: "shop-a", Route: "create-order", To: "us", From: 1_000_000, Amount: 1_000_000, Reason: "test",
	}}}
	const bucket = "rl:{shop-a}:create-order"
	share := func(region string) string { return servers[region].Client().HGet(t.Context(), bucket, "share").Val() }
	var last time.Time
	eventually(t, 20*time.Second, "the home has moved", func() bool {
		if time.Since(last) > time.Second {
			last = time.Now()
			advice.Sequence++
			advice.Cycle++
			data, err := wire.Encode(&advice)
			if err != nil {
				t.Fatal(err)
			}
			if err := conn.Publish(wire.SubjectAdvice("eu"), data); err != nil {
				t.Fatal(err)
			}
		}
		return share("eu") == "0" && share("us") == "1000000"
	})
	for region := range gateways { // both find the new home; a token is due every 4 s
		eventually(t, 30*time.Second, "a request admitted in "+region, func() bool {
			return post(region).StatusCode == http.StatusOK
		})
	}
	if most := 3 + int(time.Since(began).Seconds()*3/12) + 1; admitted > most {
		t.Errorf("%d admitted in %v", admitted, time.Since(began))
	}
}
