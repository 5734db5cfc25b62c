package app_test

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"partidor.dev/partidor/shared/limit"
	"partidor.dev/partidor/shared/testenv"
	"partidor.dev/partidor/shared/wire"
)

// Two regions share a limit 70/30; on the rebalancer's word eu gives half of the whole to us. What the gateways decide by
// afterwards is what their own Redis says.
func TestShareMovesBetweenRegions(t *testing.T) {
	s := newSet(t)
	s.shop(t, "shop-a")
	s.rule(t, "shop-a", 1000, 100, 1)
	s.exec(t, `INSERT INTO region (name, base_share) VALUES ('eu', 700000), ('us', 300000)`)
	servers := map[string]*testenv.Redis{"eu": s.redis, "us": testenv.StartRedis(t)}
	gateways := map[string]*gateway{}
	for region, redis := range servers {
		config := strings.Replace(s.config, s.redis.Addr, redis.Addr, 1)
		gateways[region] = start(t, config+"\nregion: "+region+"\ninstance: "+region+"-1\nexchange: {fast_loop: \"off\"}\n")
	}
	const bucket = "rl:{shop-a}:create-order"
	field := func(region, name string) float64 {
		v, _ := strconv.ParseFloat(servers[region].Client().HGet(context.Background(), bucket, name).Val(), 64)
		return v
	}
	gateways["eu"].post("shop-a")
	gateways["us"].post("shop-a")

	conn := s.nats.Conn(t)
	advice := wire.Advice{Header: wire.Header{Region: "eu", Instance: "rebalancer", Started: 1}, Term: 1, Moves: []wire.Move{{
		Tenant: "shop-a", Route: "create-order", To: "us", From: 700_000, Target: 200_000, Amount: 500_000, Floor: 35_000, Reason: "test",
	}}}
	var last time.Time
	eventually(t, 20*time.Second, "the share has moved", func() bool {
		if time.Since(last) > time.Second { // as the rebalancer repeats it until it is followed
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
		return field("eu", "share") == 200_000 && field("us", "share") == 800_000
	})
	if sum := limit.Share(field("eu", "share") + field("us", "share")); sum != limit.Whole {
		t.Errorf("shares add up to %d", sum)
	}
	for region, most := range map[string]int{"eu": 200, "us": 800} {
		r := gateways[region].post("shop-a")
		if left, err := strconv.Atoi(r.Header.Get("X-RateLimit-Remaining")); err != nil || r.StatusCode != http.StatusOK || left >= most {
			t.Errorf("%s answers %d with %d left, want 200 with less than its slice of %d", region, r.StatusCode, left, most)
		}
	}
}
