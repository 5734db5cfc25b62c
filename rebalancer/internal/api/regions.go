package api

import (
	"net/http"

	"partidor.dev/partidor/rebalancer/internal/board"
	"partidor.dev/partidor/rebalancer/internal/ledger"
	"partidor.dev/partidor/shared/limit"
	"partidor.dev/partidor/shared/rulesfile"
)

// regions lists all of them: there are few.
func (s *Server) regions(r *http.Request) (any, error) {
	p, err := s.picture(r)
	if err != nil {
		return nil, err
	}
	return Page[board.Region]{Items: p.Regions}, nil
}

// BaseBody is the base split, in parts per million.
type BaseBody struct {
	Base   limit.Split `json:"base"`
	Reason string      `json:"reason,omitempty"`
}

// putBase configures the base split. What gateways use follows in two steps.
func (s *Server) putBase(r *http.Request) (any, error) {
	var body BaseBody
	if err := read(r, &body); err != nil {
		return nil, err
	}
	for _, name := range body.Base.Regions() {
		if err := rulesfile.ValidateRegionName(name); err != nil {
			return nil, badRequest("base."+name, err.Error())
		}
	}
	e, err := edit(r, body.Reason)
	if err != nil {
		return nil, err
	}
	return outdating(s, e, func() (ledger.Diff[[]ledger.Region], error) { return s.Ledger.PutBase(r.Context(), e, body.Base) })
}

// StateBody says what becomes of a region.
type StateBody struct {
	State  string `json:"state"`
	Reason string `json:"reason,omitempty"`
}

func (s *Server) putRegionState(r *http.Request) (any, error) {
	var body StateBody
	if err := read(r, &body); err != nil {
		return nil, err
	}
	switch body.State {
	case ledger.RegionActive, ledger.RegionDraining, ledger.RegionDead:
	default:
		return nil, badRequest("state", "must be active, draining or dead")
	}
	e, err := edit(r, body.Reason)
	if err != nil {
		return nil, err
	}
	return outdating(s, e, func() (ledger.Diff[ledger.Region], error) {
		return s.Ledger.PutRegionState(r.Context(), e, r.PathValue("name"), body.State)
	})
}
