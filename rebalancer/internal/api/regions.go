package api

import (
	"maps"
	"net/http"
	"slices"

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

// RegionsBody configures all regions: each with its base share, in parts per million, and what else is to be changed of it.
type RegionsBody struct {
	Regions map[string]ledger.RegionChange `json:"regions"`
	Reason  string                         `json:"reason,omitempty"`
}

// putRegions configures the base split and what else is said of the regions. What gateways use of it follows in two steps.
func (s *Server) putRegions(r *http.Request) (any, error) {
	var body RegionsBody
	if err := read(r, &body); err != nil {
		return nil, err
	}
	if len(body.Regions) == 0 {
		return nil, badRequest("regions", "missing")
	}
	for _, name := range slices.Sorted(maps.Keys(body.Regions)) {
		if err := rulesfile.ValidateRegionName(name); err != nil {
			return nil, badRequest("regions."+name, err.Error())
		}
	}
	e, err := edit(r, body.Reason)
	if err != nil {
		return nil, err
	}
	return outdating(s, e, func() (ledger.Diff[[]ledger.Region], error) { return s.Ledger.PutRegions(r.Context(), e, body.Regions) })
}

// RegionBody changes one region: its floor, its failure domain, or its state. What is absent stays as it is.
type RegionBody struct {
	Floor  *limit.Share `json:"floor,omitempty"`
	Domain *string      `json:"domain,omitempty"`
	State  *string      `json:"state,omitempty"`
	Reason string       `json:"reason,omitempty"`
}

func (s *Server) patchRegion(r *http.Request) (any, error) {
	var body RegionBody
	if err := read(r, &body); err != nil {
		return nil, err
	}
	e, err := edit(r, body.Reason)
	if err != nil {
		return nil, err
	}
	if body.Floor == nil && body.Domain == nil && body.State == nil {
		return nil, badRequest("body", "nothing to change: give floor, domain or state")
	}
	change := ledger.RegionChange{Floor: body.Floor, Domain: body.Domain, State: body.State}
	return outdating(s, e, func() (ledger.Diff[ledger.Region], error) {
		return s.Ledger.PutRegion(r.Context(), e, r.PathValue("name"), change)
	})
}
