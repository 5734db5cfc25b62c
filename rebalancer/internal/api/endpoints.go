package api

import (
	"encoding/json"
	"net/http"

	"partidor.dev/partidor/rebalancer/internal/board"
	"partidor.dev/partidor/rebalancer/internal/ledger"
	"partidor.dev/partidor/shared/rulesfile"
)

// endpoint is one operation of the API. The mux and the OpenAPI document are both made of the list of them.
type endpoint struct {
	method, path string
	role         Role
	handle       handler
	summary      string
	// query lists the parameters that it takes.
	query []string
	// body and answer are empty values of the types that it reads and writes; nil for none.
	body, answer any
}

// checked refuses, before the handler is asked, parameters that the operation does not take, and a body where it reads none: a
// misspelt dry_run must not be a real run.
func (e *endpoint) checked() handler {
	return func(r *http.Request) (any, error) {
		if _, err := queryOf(r, e.query...); err != nil {
			return nil, err
		}
		if e.body == nil {
			if err := bare(r); err != nil {
				return nil, err
			}
		}
		return e.handle(r)
	}
}

var (
	paged   = []string{"size", "page"}
	changes = []string{"dry_run"}
	removes = []string{"dry_run", "reason"}
)

func (s *Server) endpoints() []endpoint {
	return []endpoint{
		{"GET", "/v1/status", Viewer, s.status, "How this rebalancer is, and who leads", nil, nil, Status{}},
		{"GET", "/v1/regions", Viewer, s.regions, "All regions, and what is heard of them", nil, nil, Page[board.Region]{}},
		{"PUT", "/v1/regions", Operator, s.putRegions, "Configure all regions: the base split, floors and failure domains", changes, RegionsBody{}, ledger.Diff[[]ledger.Region]{}},
		{"PATCH", "/v1/regions/{name}", Operator, s.patchRegion, "Change the floor or the failure domain of a region, drain it, declare it dead, or restore it", changes, RegionBody{}, ledger.Diff[ledger.Region]{}},
		{"GET", "/v1/splits", Viewer, s.splits, "Keys with their rules, shares, targets and pins", append([]string{"tenant", "route", "q", "order"}, paged...), nil, Page[board.Key]{}},
		{"PUT", "/v1/splits/{tenant}/{route}", Operator, s.putSplit, "Set the shares of all regions, for an hour unless said otherwise", changes, PinBody{}, ledger.Diff[ledger.Pins]{}},
		{"PUT", "/v1/splits/{tenant}/{route}/pins", Operator, s.putPins, "Pin shares of some regions", changes, PinBody{}, ledger.Diff[ledger.Pins]{}},
		{"DELETE", "/v1/splits/{tenant}/{route}/pins", Operator, s.deletePins, "Unpin a key", removes, nil, ledger.Diff[ledger.Pins]{}},
		{"GET", "/v1/explain/{tenant}/{route}", Viewer, s.explain, "Why a key is limited as it is", nil, nil, Explanation{}},
		{"GET", "/v1/demand/{tenant}/{route}", Viewer, s.demand, "Recorded demand of a key; of all others together for */*", []string{"hours"}, nil, Page[ledger.DemandPoint]{}},
		{"GET", "/v1/rules", Viewer, s.rules, "Rules", append([]string{"tenant", "route", "q"}, paged...), nil, Page[ledger.Rule]{}},
		{"POST", "/v1/rules", Operator, s.applyRules, "Make the rules as declared, all or none", changes, RuleSet{}, ledger.RulePlan{}},
		{"GET", "/v1/rules/{tenant}/{route}", Viewer, s.rule, "One rule", nil, nil, ledger.Rule{}},
		{"PUT", "/v1/rules/{tenant}/{route}", Operator, s.putRule, "Create or replace a rule", changes, rulesfile.Rule{}, ledger.Diff[ledger.Rule]{}},
		{"DELETE", "/v1/rules/{tenant}/{route}", Operator, s.deleteRule, "Delete a rule: its keys go to the next match", removes, nil, ledger.Diff[ledger.Rule]{}},
		{"GET", "/v1/tenants", Viewer, s.tenants, "Tenants and their plans", append([]string{"id", "plan", "q"}, paged...), nil, Page[ledger.Tenant]{}},
		{"PUT", "/v1/tenants/{id}", Operator, s.putTenant, "Create a tenant or change its plan", changes, TenantBody{}, ledger.Diff[ledger.Tenant]{}},
		{"DELETE", "/v1/tenants/{id}", Operator, s.deleteTenant, "Delete a tenant and its keys", removes, nil, ledger.Diff[ledger.Tenant]{}},
		{"GET", "/v1/keys", Viewer, s.keys, "API keys, by their digests", append([]string{"tenant", "q"}, paged...), nil, Page[ledger.APIKey]{}},
		{"POST", "/v1/keys", Operator, s.createKey, "Make an API key; it is shown this once", changes, KeyBody{}, NewKey{}},
		{"POST", "/v1/keys/{sha256}/rotate", Operator, s.rotateKey, "Make a successor; the old key goes on for a while", changes, RotateBody{}, NewKey{}},
		{"DELETE", "/v1/keys/{sha256}", Operator, s.revokeKey, "End an API key at once and for good", removes, nil, ledger.Diff[ledger.APIKey]{}},
		{"GET", "/v1/parameters", Viewer, s.parameters, "Run-time parameters", nil, nil, Page[ParameterView]{}},
		{"PUT", "/v1/parameters/{name}", Operator, s.putParameter, "Set a parameter", changes, ParameterBody{}, ledger.Diff[ledger.Parameter]{}},
		{"DELETE", "/v1/parameters/{name}", Operator, s.deleteParameter, "Go back to a parameter's default", removes, nil, ledger.Diff[ledger.Parameter]{}},
		{"GET", "/v1/history", Viewer, s.history, "Changes, newest first", append([]string{"kind", "tenant", "route", "name", "actor"}, paged...), nil, Page[ledger.Entry]{}},
		{"POST", "/v1/history/{id}/rollback", Operator, s.rollback, "Bring one thing back to what it was before a change", changes, RollbackBody{}, json.RawMessage{}},
		{"POST", "/v1/rebalance/run", Operator, s.runCycle, "Ask the leader for a cycle now", nil, nil, nil},
		{"POST", "/v1/rebalance/plan", Viewer, s.preview, "What a cycle would do now, with other parameters", nil, PreviewBody{}, Preview{}},
		{"GET", "/v1/openapi.json", Nobody, s.openAPI, "This document", nil, nil, json.RawMessage{}},
	}
}

// runCycle asks the leader for a cycle; it comes soon, not at once.
func (s *Server) runCycle(r *http.Request) (any, error) {
	return nil, s.Ledger.RequestCycle(r.Context())
}
