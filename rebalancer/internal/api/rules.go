package api

import (
	"fmt"
	"net/http"

	"partidor.dev/partidor/rebalancer/internal/ledger"
	"partidor.dev/partidor/shared/rulesfile"
)

// rules lists them in the order of tenant and route: all, of one tenant, of one route, or whose names hold q.
func (s *Server) rules(r *http.Request) (any, error) {
	return listing(r, []string{"tenant", "route", "q"}, 2, func(r ledger.Rule) []string { return []string{r.Tenant, r.Route} },
		func(q *query, after []string, limit int) ([]ledger.Rule, error) {
			return s.Ledger.Rules(r.Context(), ledger.Filter{Tenant: q.text("tenant"), Route: q.text("route"), Part: q.text("q"),
				After: [2]string(after), Limit: limit})
		})
}

func (s *Server) rule(r *http.Request) (any, error) {
	return s.Ledger.RuleOf(r.Context(), r.PathValue("tenant"), r.PathValue("route"))
}

// putRule creates or replaces one; the names in the path count, and the body need not repeat them.
func (s *Server) putRule(r *http.Request) (any, error) {
	var rule rulesfile.Rule
	if err := read(r, &rule); err != nil {
		return nil, err
	}
	tenant, route := r.PathValue("tenant"), r.PathValue("route")
	if rule.Tenant != "" && rule.Tenant != tenant || rule.Route != "" && rule.Route != route {
		return nil, badRequest("tenant", "the body speaks of another rule than the path")
	}
	rule.Tenant, rule.Route = tenant, route
	if err := fieldFaults(rule.Validate()); err != nil {
		return nil, err
	}
	if err := notOver(rule.ExpiresAt); err != nil {
		return nil, err
	}
	e, err := edit(r, rule.Reason)
	if err != nil {
		return nil, err
	}
	return outdating(s, e, func() (ledger.Diff[ledger.Rule], error) { return s.Ledger.PutRule(r.Context(), e, rule) })
}

func (s *Server) deleteRule(r *http.Request) (any, error) {
	e, err := edit(r, r.URL.Query().Get("reason"))
	if err != nil {
		return nil, err
	}
	return outdating(s, e, func() (ledger.Diff[ledger.Rule], error) {
		return s.Ledger.DeleteRule(r.Context(), e, r.PathValue("tenant"), r.PathValue("route"))
	})
}

// RuleSet is the body of apply.
type RuleSet struct {
	Rules []rulesfile.Rule `json:"rules"`
	// Prune deletes the rules that are not in the set.
	Prune  bool   `json:"prune,omitempty"`
	Reason string `json:"reason,omitempty"`
}

// applyRules makes the rules as declared, all or none.
func (s *Server) applyRules(r *http.Request) (any, error) {
	var set RuleSet
	if err := read(r, &set); err != nil {
		return nil, err
	}
	file := rulesfile.File{Rules: set.Rules}
	if err := fieldFaults(file.Validate()); err != nil {
		return nil, err
	}
	for i := range set.Rules {
		if notOver(set.Rules[i].ExpiresAt) != nil {
			return nil, badRequest(fmt.Sprintf("rules[%d].expires_at", i), "has passed")
		}
	}
	if set.Prune && len(set.Rules) == 0 {
		return nil, badRequest("rules", "an empty set with prune would delete every rule; delete them by name")
	}
	reason := set.Reason
	if reason == "" {
		reason = fmt.Sprintf("applied as a set of %d", len(set.Rules))
	}
	e, err := edit(r, reason)
	if err != nil {
		return nil, err
	}
	return outdating(s, e, func() (ledger.RulePlan, error) {
		return s.Ledger.ApplyRules(r.Context(), e, set.Rules, set.Prune)
	})
}

// outdating makes a change and sees to it that the next look shows it.
func outdating[T any](s *Server, e ledger.Edit, change func() (T, error)) (any, error) {
	out, err := change()
	if err != nil {
		return nil, err
	}
	if !e.Dry {
		s.Board.Outdate()
	}
	return out, nil
}
