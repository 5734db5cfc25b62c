package api

import (
	"context"
	"encoding/json"
	"time"

	"partidor.dev/partidor/rebalancer/internal/ledger"
	"partidor.dev/partidor/shared/limit"
	"partidor.dev/partidor/shared/rulesfile"
)

// Ledger is what the API reads and changes. Methods return within ctx's deadline; a change is whole or not at all; they
// fail with the errors of package ledger.
type Ledger interface {
	RuleLedger
	DirectoryLedger
	SplitLedger
	RegionLedger
	ParameterLedger
	HistoryLedger
	DemandLedger
	// RequestCycle asks the leader, wherever it is, for a cycle now.
	RequestCycle(ctx context.Context) error
}

// RuleLedger keeps rules.
type RuleLedger interface {
	Rules(ctx context.Context, f ledger.Filter) ([]ledger.Rule, error)
	RuleOf(ctx context.Context, tenant, route string) (ledger.Rule, error)
	PutRule(ctx context.Context, e ledger.Edit, rule rulesfile.Rule) (ledger.Diff[ledger.Rule], error)
	DeleteRule(ctx context.Context, e ledger.Edit, tenant, route string) (ledger.Diff[ledger.Rule], error)
	ApplyRules(ctx context.Context, e ledger.Edit, rules []rulesfile.Rule, prune bool) (ledger.RulePlan, error)
}

// DirectoryLedger keeps tenants and their keys.
type DirectoryLedger interface {
	Tenants(ctx context.Context, f ledger.Filter, plan string) ([]ledger.Tenant, error)
	PutTenant(ctx context.Context, e ledger.Edit, id, plan string) (ledger.Diff[ledger.Tenant], error)
	DeleteTenant(ctx context.Context, e ledger.Edit, id string) (ledger.Diff[ledger.Tenant], error)
	Keys(ctx context.Context, f ledger.Filter) ([]ledger.APIKey, error)
	CreateKey(ctx context.Context, e ledger.Edit, hash [32]byte, k ledger.APIKey) (ledger.APIKey, error)
	RotateKey(ctx context.Context, e ledger.Edit, old string, successor [32]byte, grace time.Duration) (ledger.APIKey, error)
	RevokeKey(ctx context.Context, e ledger.Edit, hash string) (ledger.Diff[ledger.APIKey], error)
}

// SplitLedger keeps pins.
type SplitLedger interface {
	PutPins(ctx context.Context, e ledger.Edit, key limit.Key, pins ledger.Pins, operation string) (ledger.Diff[ledger.Pins], error)
}

// RegionLedger keeps regions.
type RegionLedger interface {
	PutRegions(ctx context.Context, e ledger.Edit, declared map[string]ledger.RegionChange) (ledger.Diff[[]ledger.Region], error)
	PutRegion(ctx context.Context, e ledger.Edit, name string, c ledger.RegionChange) (ledger.Diff[ledger.Region], error)
}

// ParameterLedger keeps parameters.
type ParameterLedger interface {
	ParameterRows(ctx context.Context) ([]ledger.Parameter, error)
	PutParameter(ctx context.Context, e ledger.Edit, name string, value json.RawMessage) (ledger.Diff[ledger.Parameter], error)
}

// HistoryLedger keeps the history.
type HistoryLedger interface {
	History(ctx context.Context, f ledger.HistoryFilter) ([]ledger.Entry, error)
	HistoryEntry(ctx context.Context, id int64) (ledger.Entry, error)
}

// DemandLedger keeps recorded demand.
type DemandLedger interface {
	Demand(ctx context.Context, key limit.Key, since time.Time, step time.Duration) ([]ledger.DemandPoint, error)
}
