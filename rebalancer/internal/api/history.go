package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"partidor.dev/partidor/rebalancer/internal/ledger"
	"partidor.dev/partidor/rebalancer/internal/parameter"
	"partidor.dev/partidor/shared/limit"
)

// history lists changes, newest first; kind may name several, separated by commas.
func (s *Server) history(r *http.Request) (any, error) {
	return listing(r, []string{"kind", "tenant", "route", "name", "actor"}, 1, func(e ledger.Entry) []string { return []string{strconv.FormatInt(e.ID, 10)} },
		func(q *query, after []string, limit int) (_ []ledger.Entry, err error) {
			f := ledger.HistoryFilter{Tenant: q.text("tenant"), Route: q.text("route"), Name: q.text("name"), Actor: q.text("actor"), Limit: limit}
			if kinds := q.text("kind"); kinds != "" {
				f.Kinds = strings.Split(kinds, ",")
			}
			if after[0] != "" {
				if f.Before, err = strconv.ParseInt(after[0], 10, 64); err != nil {
					return nil, badRequest("page", "not a page of this list")
				}
			}
			return s.Ledger.History(r.Context(), f)
		})
}

// RollbackBody says why.
type RollbackBody struct {
	Reason string `json:"reason,omitempty"`
}

// rollback brings one thing back to what it was before an entry of the history. No bucket is refilled by it: a rule change
// clamps tokens and never raises them, and shares move by transfers.
func (s *Server) rollback(r *http.Request) (any, error) {
	var body RollbackBody
	if err := read(r, &body); err != nil {
		return nil, err
	}
	id, err := strconv.ParseInt(r.PathValue("id"), 10, 64)
	if err != nil {
		return nil, badRequest("id", "must be a number")
	}
	entry, err := s.Ledger.HistoryEntry(r.Context(), id)
	if err != nil {
		return nil, err
	}
	if body.Reason == "" {
		body.Reason = fmt.Sprintf("rollback of change %d", id)
	}
	e, err := edit(r, body.Reason)
	if err != nil {
		return nil, err
	}
	return outdating(s, e, func() (any, error) { return s.undo(r, e, &entry) })
}

func (s *Server) undo(r *http.Request, e ledger.Edit, entry *ledger.Entry) (any, error) {
	ctx := r.Context()
	none := len(entry.Before) == 0 || bytes.Equal(entry.Before, []byte("null"))
	key := limit.Key{Tenant: entry.Tenant, Route: entry.Route}
	switch entry.Kind {
	case "rule":
		if none {
			return s.Ledger.DeleteRule(ctx, e, entry.Tenant, entry.Route)
		}
		rule, err := ledger.RuleOfHistory(entry.Before)
		if err != nil {
			return nil, err
		}
		if notOver(rule.ExpiresAt) != nil {
			return nil, cannotRollBack("the rule of then was for a while, and has ended since")
		}
		return s.Ledger.PutRule(ctx, e, rule)
	case "parameter":
		var was ledger.Parameter
		if !none {
			if err := json.Unmarshal(entry.Before, &was); err != nil {
				return nil, err
			}
			if _, ok := parameter.Find(entry.Name); !ok {
				return nil, notFound("parameter " + entry.Name)
			}
		}
		return s.Ledger.PutParameter(ctx, e, entry.Name, was.Value)
	case "tenant":
		if none {
			return s.Ledger.DeleteTenant(ctx, e, entry.Tenant)
		}
		var was struct{ Plan string }
		if err := json.Unmarshal(entry.Before, &was); err != nil {
			return nil, err
		}
		return s.Ledger.PutTenant(ctx, e, entry.Tenant, was.Plan)
	case "region":
		return s.undoRegion(r, e, entry)
	case "pin":
		var was ledger.Pins
		if !none {
			if err := json.Unmarshal(entry.Before, &was); err != nil {
				return nil, err
			}
		}
		if !was.Expires.IsZero() && notOver(&was.Expires) != nil {
			was = ledger.Pins{} // they would have ended by now
		}
		return s.Ledger.PutPins(ctx, e, key, was, "rollback")
	case "split":
		var was limit.Split
		if err := json.Unmarshal(entry.Before, &was); err != nil {
			return nil, err
		}
		return s.Ledger.PutPins(ctx, e, key, ledger.Pins{Shares: was, Expires: time.Now().Add(holdSet).UTC()}, "rollback")
	}
	return nil, cannotRollBack("a change of kind " + entry.Kind + " is not undone by itself: a revoked key stays revoked")
}

func cannotRollBack(why string) error {
	return problem(http.StatusConflict, "cannot-roll-back", "Cannot be rolled back", why)
}

// undoRegion brings back what is said of a region by itself.
func (s *Server) undoRegion(r *http.Request, e ledger.Edit, entry *ledger.Entry) (any, error) {
	var was, is struct {
		Base   limit.Share `json:"base_share"`
		Floor  limit.Share `json:"floor_share"`
		Domain string      `json:"failure_domain"`
		State  string      `json:"state"`
	}
	if err := errors.Join(json.Unmarshal(entry.Before, &was), json.Unmarshal(entry.After, &is)); err != nil || was.Base != is.Base || was == is {
		return nil, cannotRollBack("base shares and what follows from them are configured for all regions together: see regions set")
	}
	return s.Ledger.PutRegion(r.Context(), e, entry.Name, ledger.RegionChange{Floor: &was.Floor, Domain: &was.Domain, State: &was.State})
}
