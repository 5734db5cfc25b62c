package api

import (
	"fmt"
	"math"
	"net/http"
	"time"

	"partidor.dev/partidor/rebalancer/internal/board"
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
	// Reached is the revision that all its gateways serve by.
	Reached  limit.Revision `json:"reached,omitzero"`
	Share    limit.Share    `json:"share"`
	Capacity float64        `json:"slice_capacity"`
	// Rate in tokens per second.
	Rate    float64 `json:"slice_rate"`
	Offered float64 `json:"offered"`
	Refused float64 `json:"refused"`
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
		e := RegionExplanation{Region: share.Region, Known: p.Regions[i].Known, Reached: p.Regions[i].Reached, Share: share.Share, Offered: share.Offered, Refused: share.Refused}
		if key.Rule != nil {
			slice := key.Rule.Limit(key.RuleRevision).SliceOf(share.Share)
			e.Capacity, e.Rate = slice.Capacity, slice.Rate
		}
		x.Regions = append(x.Regions, e)
	}
	x.Findings = findings(&key, x.Regions)
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

// findings say why requests are refused, and what would admit them.
func findings(k *board.Key, regions []RegionExplanation) (out []string) {
	say := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	if k.Rule == nil {
		return []string{"nothing limits this key"}
	}
	switch k.Rule.Mode {
	case limit.Block:
		return []string{"the rule's mode is block: every request is refused, whatever the numbers; change the mode to admit any"}
	case limit.Unlimited:
		return []string{"the rule's mode is unlimited: no request is refused"}
	case limit.Shadow:
		say("the rule's mode is shadow: refusals are counted, requests are admitted")
	}
	for _, r := range regions {
		if r.Known && k.RuleRevision.Newer(r.Reached) {
			say("%s still serves by revision %s, the rule is of %s", r.Region, r.Reached, k.RuleRevision)
		}
	}
	rule := k.Rule.Limit(k.RuleRevision)
	rate := rule.SliceOf(limit.Whole).Rate
	idle := 0.0
	for _, r := range regions {
		idle += math.Max(0, r.Rate-(r.Offered-r.Refused))
	}
	for _, r := range regions {
		switch {
		case !r.Known:
			say("%s is silent: what it offers is unknown and its share stays where it is", r.Region)
		case r.Refused > 0 && k.Offered > rate:
			say("%s refuses %.3g of %.3g tokens/s: the key asks for %.3g/s worldwide, its limit is %.3g/s; a higher limit would admit more", r.Region, r.Refused, r.Offered, k.Offered, rate)
		case r.Refused > 0:
			say("%s refuses %.3g of %.3g tokens/s with %.1f %% of the limit while other regions leave %.3g/s unused; the next cycle moves share there", r.Region, r.Refused, r.Offered, r.Share.Percent(), idle)
		}
	}
	for _, s := range k.Regions {
		if s.Pin != nil {
			end := "until unpinned"
			if !s.PinEnds.IsZero() {
				end = "until " + s.PinEnds.UTC().Format(time.RFC3339)
			}
			say("%s is pinned at %.1f %% %s", s.Region, s.Pin.Percent(), end)
		}
	}
	if len(out) == 0 {
		say("nothing is refused")
	}
	return out
}
