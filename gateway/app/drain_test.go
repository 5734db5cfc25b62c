package app_test

import (
	"context"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// A gateway is stopped under load while its clients follow readiness, as balancers do: no request is lost (request-path 115).
func TestNoRequestIsLostInADrain(t *testing.T) {
	s := newSet(t)
	s.shop(t, "shop-a")
	s.rule(t, "shop-a", 1_000_000, 1_000_000, 1)
	g := start(t, s.config+"\nserver: {drain_delay: 500ms, drain_timeout: 10s}\n")
	g.post("shop-a")
	var away atomic.Bool
	var served, closed atomic.Int64
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			client := &http.Client{Transport: &http.Transport{}}
			defer client.CloseIdleConnections()
			for !away.Load() {
				req, err := http.NewRequestWithContext(context.Background(), http.MethodPost, g.URL+"/orders", http.NoBody)
				if err != nil {
					t.Error(err)
					return
				}
				req.Header.Set("X-Api-Key", "shop-a")
				resp, err := client.Do(req)
				if err != nil {
					t.Errorf("lost: %v", err)
					return
				}
				_, _ = io.Copy(io.Discard, resp.Body)
				_ = resp.Body.Close()
				if resp.StatusCode != http.StatusOK {
					t.Errorf("status %d", resp.StatusCode)
				}
				if resp.Close {
					closed.Add(1)
				}
				served.Add(1)
			}
		})
	}
	eventually(t, 10*time.Second, "load is on", func() bool { return served.Load() > 200 })
	g.cancel()
	eventually(t, 5*time.Second, "readiness says no", func() bool {
		status, _ := g.ready()
		return status == http.StatusServiceUnavailable
	})
	// Balancers take a moment to notice; requests that come meanwhile are answered, and told to go elsewhere next time.
	eventually(t, 5*time.Second, "clients are told to leave", func() bool { return closed.Load() > 0 })
	away.Store(true)
	wg.Wait()
	g.stop()
}
