package api

import (
	"net/http"

	"partidor.dev/partidor/rebalancer/internal/board"
	"partidor.dev/partidor/rebalancer/internal/collect"
	"partidor.dev/partidor/rebalancer/internal/ledger"
	"partidor.dev/partidor/shared/limit"
)

// Explanation says why a key is limited as it is.
type Explanation struct {
	Key board.Key `json:"key"`
	// RuleFrom says in words whom the rule is written for.
	RuleFrom string `json:"rule_from"`
	// Regions has what each enforces.
	Regions []RegionExplanation `json:"regions"`
	// Recent are the last changes that concern the key: its rule, its split and its pins.
	Recent []ledger.Entry `json:"recent"`
	// Findings are sentences, the most telling first.
	Findings []string `json:"findings"`
}

// RegionExplanation is one region's slice of the key.
type RegionExplanation struct {
	Region string `json:"region"`
	// Known is false while nothing is heard of the region.
	Known bool `json:"known"`
	// Reached is the revision that all its gateways serve by; Gateways says it of each.
	Reached  limit.Revision    `json:"reached,omitzero"`
	Gateways []collect.Gateway `json:"gateways,omitempty"`
	Share    limit.Share       `json:"share"`
	Capacity float64           `json:"slice_capacity"`
	// Rate in tokens per second.
	Rate    float64 `json:"slice_rate"`
	Offered float64 `json:"offered"`
	Refused float64 `json:"refused"`
	// The rest is what its gateways say: tokens last seen in the bucket, who decided lately, the last refusal, how the share
	// has moved, and which tokens it got from others.
	Tokens  *float64            `json:"tokens,omitempty"`
	Sources map[string]uint64   `json:"sources,omitempty"`
	Refusal *board.Refusal      `json:"last_refusal,omitempty"`
	Moves   []collect.ShareMove `json:"moves,omitempty"`
	Loans   []collect.Loan      `json:"loans,omitempty"`
}

// recentChanges bounds Explanation.Recent.
const recentChanges = 10

func (s *Server) explain(r *http.Request) (any, error) {
	name, err := keyOf(r)
	if err != nil {
		return nil, err
	}
	key, p, err := s.Board.Key(r.Context(), name)
	if err != nil {
		return nil, err
	}
	x := Explanation{Key: key, RuleFrom: origin(&key), Findings: []string{}}
	for i, share := range key.Regions {
		e := RegionExplanation{Region: share.Region, Known: p.Regions[i].Known, Reached: p.Regions[i].Reached, Gateways: p.Regions[i].Gateways,
			Share: share.Share, Offered: share.Offered, Refused: share.Refused,
			Tokens: share.Tokens, Sources: share.Sources, Refusal: share.Refusal, Moves: share.Moves, Loans: share.Loans}
		if key.Rule != nil {
			slice := key.Rule.Limit(key.RuleRevision).SliceOf(share.Share)
			e.Capacity, e.Rate = slice.Capacity, slice.Rate
		}
		x.Regions = append(x.Regions, e)
	}
	if _, shadow := s.switches(p); shadow {
		x.Findings = append(x.Findings, "the kill switch is on: everything is admitted, refusals are only counted; partidorctl shadow off ends that")
	}
	x.Findings = append(x.Findings, findings(&key, x.Regions, p.At)...)
	x.Recent, err = s.Ledger.History(r.Context(), ledger.HistoryFilter{Kinds: []string{"split", "pin"}, Tenant: name.Tenant, Route: name.Route, Limit: recentChanges})
	if err != nil {
		return nil, err
	}
	if key.Rule != nil && key.Rule.Tenant != "" {
		rules, err := s.Ledger.History(r.Context(), ledger.HistoryFilter{Kinds: []string{"rule"}, Tenant: key.Rule.Tenant, Route: key.Rule.Route, Limit: recentChanges})
		if err != nil {
			return nil, err
		}
		x.Recent = append(x.Recent, rules...)
	}
	return x, nil
}

func origin(k *board.Key) string {
	switch {
	case k.Rule == nil:
		return "no rule limits all routes of the tenant together"
	case k.Rule.Tenant == "" && k.Rule.Route == "":
		return "the configured default: no rule matches"
	case k.Rule.Tenant == k.Tenant && k.Rule.Route == k.Route:
		return "a rule of this tenant for this route"
	case k.Rule.Tenant == k.Tenant:
		return "a rule of this tenant for all routes"
	case k.Rule.Tenant == limit.Wildcard && k.Rule.Route == limit.Wildcard:
		return "the rule of everybody for all routes"
	case k.Rule.Tenant == limit.Wildcard:
		return "the rule of everybody for this route"
	case k.Rule.Route == limit.Wildcard:
		return "a rule of the tenant's plan " + k.Rule.Tenant[len(limit.PlanPrefix):] + " for all routes"
	}
	return "a rule of the tenant's plan " + k.Rule.Tenant[len(limit.PlanPrefix):] + " for this route"
}
