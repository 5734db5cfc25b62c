package api

import (
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"partidor.dev/partidor/rebalancer/internal/board"
	"partidor.dev/partidor/shared/limit"
)

// Live is one picture as the console sees it.
type Live struct {
	At      time.Time      `json:"at"`
	Status  Status         `json:"status"`
	Paused  bool           `json:"paused,omitempty"`
	Shadow  bool           `json:"shadow,omitempty"`
	Regions []board.Region `json:"regions"`
	// Keys are the most refused, then those that offer most; or Key is the one that was asked for.
	Keys []board.Key `json:"keys,omitempty"`
	Key  *board.Key  `json:"key,omitempty"`
}

const (
	// liveEvery is the time between two pictures, liveKeys how many keys one shows.
	liveEvery = 2 * time.Second
	liveKeys  = 60
	// maxStreams bounds the open consoles.
	maxStreams = 200
)

// events streams pictures as server-sent events until the caller leaves or the process stops.
func (s *Server) events(w http.ResponseWriter, r *http.Request) {
	q, err := queryOf(r, "q", "tenant", "route")
	if err != nil {
		p, _ := asProblem(err)
		writeProblem(w, p)
		return
	}
	if s.streams.Add(1) > maxStreams {
		s.streams.Add(-1)
		writeProblem(w, problem(http.StatusServiceUnavailable, "too-many-consoles", "Too many open consoles", ""))
		return
	}
	defer s.streams.Add(-1)
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no")
	stream := http.NewResponseController(w)
	tick := time.NewTicker(liveEvery)
	defer tick.Stop()
	for {
		data, err := s.live(r, q)
		if err == nil {
			_, err = fmt.Fprintf(w, "event: picture\ndata: %s\n\n", data)
		} else {
			s.Logger.DebugContext(r.Context(), "no picture", "error", err)
			_, err = fmt.Fprint(w, ": the ledger does not answer\n\n")
		}
		if err != nil || stream.Flush() != nil {
			return
		}
		select {
		case <-r.Context().Done():
			return
		case <-s.Done:
			return
		case <-tick.C:
		}
	}
}

func (s *Server) live(r *http.Request, q *query) ([]byte, error) {
	status, err := s.status(r)
	if err != nil {
		return nil, err
	}
	var l Live
	l.Status, _ = status.(Status)
	if tenant := q.text("tenant"); tenant != "" {
		key, p, err := s.Board.Key(r.Context(), limit.Key{Tenant: tenant, Route: q.text("route")})
		if err != nil {
			return nil, err
		}
		l.At, l.Regions, l.Key = p.At, p.Regions, &key
		l.Paused, l.Shadow = s.switches(p)
		return json.Marshal(l)
	}
	p, err := s.picture(r)
	if err != nil {
		return nil, err
	}
	l.At, l.Regions, l.Keys = p.At, p.Regions, s.drawn(p, p.MostRefused(liveKeys, wanted(p, q)))
	l.Paused, l.Shadow = s.switches(p)
	return json.Marshal(l)
}

// switches as the ledger has them, whether or not this process leads.
func (s *Server) switches(p *board.Picture) (paused, shadow bool) {
	values := s.inForce(p.Parameters)
	return values.Paused, values.Shadow
}
