package proxy

import (
	"context"
	"errors"
	"io"
	"net/http"
	"time"
)

// streak counts answers of one kind in a row and tells when they turn a target over.
type streak struct {
	healthy, unhealthy int // Answers in a row that it takes.
	up                 bool
	run                int // Answers in a row that contradict up.
}

// note takes one answer and tells whether the target is up.
func (s *streak) note(ok bool) bool {
	if ok == s.up {
		s.run = 0
		return s.up
	}
	s.run++
	if ok && s.run >= s.healthy || !ok && s.run >= s.unhealthy {
		s.up, s.run = ok, 0
	}
	return s.up
}

// watch asks one target for its health until ctx ends.
func (u *Upstream) watch(ctx context.Context, t *target) {
	h := u.config.Health
	s := streak{healthy: h.Healthy, unhealthy: h.Unhealthy, up: !t.down.Load()}
	ticker := time.NewTicker(h.Interval)
	defer ticker.Stop()
	for {
		ok := u.probe(ctx, t)
		if ctx.Err() != nil {
			return
		}
		if up := s.note(ok); up == t.down.Load() {
			t.down.Store(!up)
			u.logger.Warn("target changed", "upstream", u.name, "target", t.url.Host, "up", up)
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// probe asks once. Any status from 200 to 399 is health.
func (u *Upstream) probe(ctx context.Context, t *target) bool {
	ctx, cancel := context.WithTimeout(ctx, u.config.Health.Timeout)
	defer cancel()
	asked := *t.url
	asked.Path, asked.RawPath = u.config.Health.Path, ""
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, asked.String(), nil)
	if err != nil {
		return false
	}
	req.Header.Set("User-Agent", "partidor-health")
	transport, err := u.transport(max(u.config.Health.Timeout, time.Second))
	if err != nil {
		return false
	}
	resp, err := transport.RoundTrip(req)
	if err != nil {
		return false
	}
	// A short body is read so that the connection can be used again.
	_, err = io.CopyN(io.Discard, resp.Body, 64<<10)
	resp.Body.Close()
	return (err == nil || errors.Is(err, io.EOF)) && resp.StatusCode >= 200 && resp.StatusCode < 400
}
