package e2e

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"partidor.dev/partidor/shared/testenv"
)

// controlPlaneGone: without NATS and rebalancer nothing changes for clients, and both come back by themselves.
func controlPlaneGone(t *testing.T, d *deployment) {
	c := d.send(t, "shop-a", 200, 100, map[string]float64{"eu": 20, "us": 10})
	wait(t, time.Second)
	d.nats.Kill()
	d.rebalancer.Kill()
	wait(t, 4*time.Second)
	d.startNATS(d.t)
	d.startRebalancer(d.t)
	wait(t, time.Second)
	c.end()
	c.only(t, http.StatusOK)
	c.kept(t)
	for _, g := range d.gateways() {
		d.awaitReady(t, g)
	}
}

// redisGone: while the Redis of eu is dead its gateways answer by themselves, each within its slice, us notices nothing;
// afterwards decisions come from Redis again. All along about as much is admitted as one bucket would have admitted.
func redisGone(t *testing.T, d *deployment) {
	c := d.send(t, "outage", 100, 50, map[string]float64{"eu": 150, "us": 100})
	wait(t, 2*time.Second)
	eu := d.regions["eu"]
	eu.redis.Kill()
	wait(t, 5*time.Second)
	eu.redis.Restart()
	for _, g := range eu.gateways {
		testenv.Eventually(t, patient, func() error { return g.healthy() })
	}
	back := time.Now()
	wait(t, 3*time.Second)
	c.end()
	c.only(t, http.StatusOK, http.StatusTooManyRequests, http.StatusServiceUnavailable)
	v := d.verdict(t, "outage", 100, 50, c.start)
	t.Logf("%s", v)
	switch {
	case v.Fallback == 0:
		t.Error("nobody decided without the Redis of eu")
	case v.Efficiency < 0.6 || v.Efficiency > 1.3:
		t.Errorf("about what one bucket would have admitted is wanted: %s", v)
	}
	if after := d.verdict(t, "outage", 100, 50, back); after.Asked == after.Fallback+after.Unable {
		t.Errorf("nothing was decided by Redis once it was back: %s", after)
	}
}

// healthy tells whether a gateway is ready and not degraded.
func (g *gateway) healthy() error {
	resp, err := http.Get(g.admin + "/readyz")
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	body := make([]byte, 512)
	n, _ := resp.Body.Read(body)
	if resp.StatusCode != http.StatusOK || !ready(body[:n]) {
		return fmt.Errorf("%s: %s %s", g.url, resp.Status, body[:n])
	}
	return nil
}
