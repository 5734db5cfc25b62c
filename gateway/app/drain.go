package app

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"
)

// drain stops being ready, lets balancers notice, stops accepting and waits for the requests in flight.
func (g *gateway) drain(ctx context.Context, s *http.Server) error {
	c := &g.config.Server
	g.logger.InfoContext(ctx, "draining", "delay", c.DrainDelay, "timeout", c.DrainTimeout)
	g.draining.Store(true)
	g.heart.stop(stopWithin)
	time.Sleep(c.DrainDelay)
	within, cancel := context.WithTimeout(ctx, c.DrainTimeout)
	defer cancel()
	err := s.Shutdown(within)
	if err == nil {
		err = g.handler.Wait(within) // Shutdown forgets upgraded connections.
	}
	if errors.Is(err, context.DeadlineExceeded) {
		g.logger.WarnContext(ctx, "requests were still in flight after the drain timeout and are cut", "timeout", c.DrainTimeout)
		_ = s.Close()
		return nil
	}
	if err != nil {
		return fmt.Errorf("stop data port: %w", err)
	}
	return nil
}

// leaving tells clients, from the moment the gateway drains, to take their next request elsewhere. Connections then end
// after an answer, not while a client is about to use them again.
func (g *gateway) leaving(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if g.draining.Load() && len(r.Header["Upgrade"]) == 0 {
			w.Header().Set("Connection", "close")
		}
		next.ServeHTTP(w, r)
	})
}
