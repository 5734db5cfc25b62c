package api

import (
	"encoding/json"
	"net/http"
	"sort"
	"time"

	"partidor.dev/partidor/rebalancer/internal/cycle"
	"partidor.dev/partidor/rebalancer/internal/parameter"
	"partidor.dev/partidor/rebalancer/internal/plan"
	"partidor.dev/partidor/shared/limit"
)

// PreviewBody says what to try: parameters that replace the ones in force.
type PreviewBody struct {
	With map[string]json.RawMessage `json:"with,omitempty"`
	// Tenant restricts the answer, not the plan.
	Tenant string `json:"tenant,omitempty"`
	// Size bounds the listed changes; the largest come first. Default 100.
	Size int `json:"size,omitempty"`
}

// Preview is what a cycle would do.
type Preview struct {
	Keys    int             `json:"keys"`
	Changed int             `json:"changed"`
	Moves   int             `json:"moves"`
	Changes []PreviewChange `json:"changes"`
}

// PreviewChange is one key's split before and after.
type PreviewChange struct {
	Tenant string      `json:"tenant"`
	Route  string      `json:"route"`
	Before limit.Split `json:"before"`
	After  limit.Split `json:"after"`
	Reason string      `json:"reason"`
}

// preview plans with what is known now and does nothing else.
func (s *Server) preview(r *http.Request) (any, error) {
	var body PreviewBody
	if err := read(r, &body); err != nil {
		return nil, err
	}
	if body.Size == 0 {
		body.Size = defaultPage
	}
	if body.Size < 1 || body.Size > maxPage {
		return nil, badRequest("size", "must be from 1 to 1000")
	}
	values := s.Rebalancer.Parameters()
	values, err := values.With(body.With)
	if err != nil {
		return nil, fieldFaults(err)
	}
	in, err := s.input(r, values)
	if err != nil {
		return nil, err
	}
	res := plan.Plan(in)
	out := Preview{Keys: len(res.Targets), Changed: res.Changed, Moves: len(res.Moves), Changes: []PreviewChange{}}
	for i := range res.Targets {
		if t := &res.Targets[i]; t.Changed && (body.Tenant == "" || body.Tenant == t.Key.Tenant) {
			out.Changes = append(out.Changes, changeOf(in.Regions, t))
		}
	}
	sort.SliceStable(out.Changes, func(i, j int) bool { return largest(&out.Changes[i]) > largest(&out.Changes[j]) })
	out.Changes = out.Changes[:min(len(out.Changes), body.Size)]
	return out, nil
}

func (s *Server) input(r *http.Request, values parameter.Values) (plan.Input, error) {
	mirror, demand, known, err := s.Board.Knowledge(r.Context())
	if err != nil {
		return plan.Input{}, err
	}
	return cycle.Input(mirror, demand, known, values, time.Now()), nil
}

func changeOf(regions []plan.Region, t *plan.Target) PreviewChange {
	c := PreviewChange{Tenant: t.Key.Tenant, Route: t.Key.Route, Before: limit.Split{}, After: limit.Split{}, Reason: t.Reason.String()}
	for i, region := range regions {
		c.Before[region.Name], c.After[region.Name] = t.Observed[i], t.Shares[i]
	}
	return c
}

func largest(c *PreviewChange) (most limit.Share) {
	for region, after := range c.After {
		most = max(most, after-c.Before[region])
	}
	return most
}
