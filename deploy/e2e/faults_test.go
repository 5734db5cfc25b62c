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

// redisGone: while the Redis of eu is dead its gateways answer by themselves and hold the limit approximately, us notices
// nothing; afterwards decisions come from Redis again.
func redisGone(t *testing.T, d *deployment) {
	const rate = 50.0
	c := d.send(t, "outage", 100, rate, map[string]float64{"eu": 150, "us": 100})
	wait(t, 3*time.Second) // until the bursts are used up
	eu := d.regions["eu"]
	eu.redis.Kill()
	from := time.Since(c.start)
	const outage = 5 * time.Second
	wait(t, outage)
	got := float64(c.admittedSince(from)) / outage.Seconds()
	if got < 0.8*rate || got > 1.2*rate {
		t.Errorf("%.1f/s admitted while the Redis of eu is away, want about %.0f", got, rate)
	}
	eu.redis.Restart()
	for _, g := range eu.gateways {
		testenv.Eventually(t, patient, func() error { return g.healthy() })
	}
	wait(t, 3*time.Second) // until what was admitted meanwhile is paid back
	from = time.Since(c.start)
	wait(t, outage)
	if got := float64(c.admittedSince(from)) / outage.Seconds(); got < 0.9*rate || got > 1.1*rate {
		t.Errorf("%.1f/s admitted after the Redis of eu is back, want %.0f", got, rate)
	}
	c.end()
	c.only(t, http.StatusOK, http.StatusTooManyRequests, http.StatusServiceUnavailable)
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
