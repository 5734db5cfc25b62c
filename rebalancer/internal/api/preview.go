package api

import (
	"encoding/json"
	"net/http"
	"sort"
	"time"

	"partidor.dev/partidor/rebalancer/internal/cycle"
	"partidor.dev/partidor/rebalancer/internal/ledger"
	"partidor.dev/partidor/rebalancer/internal/plan"
	"partidor.dev/partidor/rebalancer/internal/replay"
	"partidor.dev/partidor/shared/limit"
)

// PreviewBody says what to try: parameters that replace the ones in force.
type PreviewBody struct {
	With map[string]json.RawMessage `json:"with,omitempty"`
	// Tenant restricts the answer, not the plan.
	Tenant string `json:"tenant,omitempty"`
	// Size bounds the listed changes; the largest come first. Default 100.
	Size int `json:"size,omitempty"`
	// OverHours also replays so many hours of recorded demand, at most 24, with the parameters in force and with these.
	OverHours int `json:"over_hours,omitempty"`
}

// Preview is what a cycle would do.
type Preview struct {
	Keys    int             `json:"keys"`
	Changed int             `json:"changed"`
	Moves   int             `json:"moves"`
	Changes []PreviewChange `json:"changes"`
	Replay  *PreviewReplay  `json:"replay,omitempty"`
}

// PreviewReplay is what recorded demand would have met with the parameters in force, and with those that are tried.
type PreviewReplay struct {
	Hours int            `json:"hours"`
	Now   replay.Outcome `json:"now"`
	With  replay.Outcome `json:"with"`
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
	if body.OverHours < 0 || body.OverHours > 24 {
		return nil, badRequest("over_hours", "must be from 1 to 24")
	}
	if _, err := s.Base.With(body.With); err != nil {
		return nil, fieldFaults(err)
	}
	mirror, demand, known, err := s.Board.Knowledge(r.Context())
	if err != nil {
		return nil, err
	}
	present := s.inForce(mirror.Parameters)
	values, err := present.With(body.With)
	if err != nil {
		return nil, fieldFaults(err)
	}
	in := cycle.Input(mirror, demand, known, values, time.Now())
	res := plan.Plan(in)
	out := Preview{Keys: len(res.Targets), Changed: res.Changed, Moves: len(res.Moves), Changes: []PreviewChange{}}
	for i := range res.Targets {
		if t := &res.Targets[i]; t.Changed && (body.Tenant == "" || body.Tenant == t.Key.Tenant) {
			out.Changes = append(out.Changes, changeOf(in.Regions, t))
		}
	}
	sort.SliceStable(out.Changes, func(i, j int) bool { return largest(&out.Changes[i]) > largest(&out.Changes[j]) })
	out.Changes = out.Changes[:min(len(out.Changes), body.Size)]
	if body.OverHours > 0 {
		points, err := s.Ledger.Demand(r.Context(), limit.Key{}, time.Now().Add(-time.Duration(body.OverHours)*time.Hour), ledger.DemandMinute)
		if err != nil {
			return nil, err
		}
		rule := func(k limit.Key) *limit.Rule { return mirror.Rules.Lookup(k, time.Now()).Rule }
		out.Replay = &PreviewReplay{Hours: body.OverHours, Now: replay.Run(in.Regions, rule, points, present.Plan),
			With: replay.Run(in.Regions, rule, points, values.Plan)}
	}
	return out, nil
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
