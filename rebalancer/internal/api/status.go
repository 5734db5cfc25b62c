package api

import (
	"encoding/json"
	"net/http"
	"time"

	"partidor.dev/partidor/rebalancer/internal/board"
)

// Status is how this rebalancer is.
type Status struct {
	Instance string    `json:"instance"`
	Version  string    `json:"version"`
	Started  time.Time `json:"started"`
	// Leading tells whether this process acts; Leader who does.
	Leading bool   `json:"leading"`
	Leader  string `json:"leader"`
	Term    int64  `json:"term,omitempty"`
	// Cycle is the last one this process ran, absent if none.
	Cycle   *CycleStatus `json:"cycle,omitempty"`
	Reasons []string     `json:"not_ready,omitempty"`
}

// CycleStatus is how a cycle went.
type CycleStatus struct {
	Term    int64     `json:"term"`
	Number  int64     `json:"number"`
	At      time.Time `json:"at"`
	Seconds float64   `json:"seconds"`
	Cause   string    `json:"cause"`
	Keys    int       `json:"keys"`
	Changed int       `json:"changed"`
	Moves   int       `json:"moves"`
	Error   string    `json:"error,omitempty"`
}

func (s *Server) status(*http.Request) (any, error) {
	st := Status{
		Instance: s.Instance, Version: s.Version, Started: s.Started,
		Term: s.Leadership.Term(), Leader: s.Leadership.Leader(), Reasons: s.Readiness(),
	}
	st.Leading = st.Term != 0
	if o := s.Rebalancer.Last(); !o.At.IsZero() {
		st.Cycle = &CycleStatus{Term: o.Term, Number: o.Number, At: o.At, Seconds: o.Took.Seconds(), Cause: o.Cause,
			Keys: o.Keys, Changed: o.Changed, Moves: o.Moves}
		if o.Err != nil {
			st.Cycle.Error = o.Err.Error()
		}
	}
	return st, nil
}

// ready is for probes: 200 where this process could lead, else 503 with the reasons.
func (s *Server) ready(w http.ResponseWriter, _ *http.Request) {
	reasons := s.Readiness()
	w.Header().Set("Content-Type", "application/json")
	if len(reasons) > 0 {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	_ = json.NewEncoder(w).Encode(struct { // the prober may have gone
		Ready   bool     `json:"ready"`
		Reasons []string `json:"reasons,omitempty"`
	}{len(reasons) == 0, reasons})
}

// picture is the newest there is; an old one is better than none.
func (s *Server) picture(r *http.Request) (*board.Picture, error) {
	p, err := s.Board.Picture(r.Context())
	if p == nil {
		return nil, err
	}
	return p, nil
}
