package rules

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgtype"

	"partidor.dev/partidor/gateway/internal/snapshot"
	"partidor.dev/partidor/shared/limit"
)

// ruleRow is one row of rate_limit_rule as it is read, before anything in it is believed. The CHECKs of the ledger refuse
// the same, but a gateway may be older than its ledger, and a CHECK may have been dropped.
type ruleRow struct {
	Tenant, Route  string
	Capacity       int64
	Refill         *int64
	PeriodSeconds  int64
	Algorithm      string
	WindowSeconds  *int64
	CalendarWindow *string
	Mode, OnError  string
	Prefetch       bool
	Shards         int64
	MaxCost        *int64
	HideHeaders    bool
	ExpiresAt      pgtype.Timestamptz
	Revision       limit.Revision
}

// entry is the row's rule, checked.
func (r *ruleRow) entry() (snapshot.RuleEntry, error) {
	rule := &limit.Rule{
		Capacity:      r.Capacity,
		Refill:        value(r.Refill),
		PeriodSeconds: r.PeriodSeconds,
		WindowSeconds: value(r.WindowSeconds),
		Prefetch:      r.Prefetch,
		Shards:        int(r.Shards),
		MaxCost:       value(r.MaxCost),
		HideHeaders:   r.HideHeaders,
		Revision:      r.Revision,
	}
	var late error
	rule.ExpiresAt, late = end(r.ExpiresAt)
	err := errors.Join(
		late,
		validateScope(r.Tenant),
		validateRoute(r.Route),
		rule.Algorithm.UnmarshalText([]byte(r.Algorithm)),
		rule.Mode.UnmarshalText([]byte(r.Mode)),
		rule.OnError.UnmarshalText([]byte(r.OnError)),
		rule.Calendar.UnmarshalText([]byte(value(r.CalendarWindow))),
	)
	if err == nil {
		err = rule.Validate()
	}
	if err != nil {
		return snapshot.RuleEntry{}, err
	}
	return snapshot.RuleEntry{Tenant: r.Tenant, Route: r.Route, Rule: rule, Revision: r.Revision}, nil
}

// end reads an expires_at column: the zero time is never. What JSON cannot say could not be saved.
func end(at pgtype.Timestamptz) (time.Time, error) {
	switch {
	case !at.Valid:
		return time.Time{}, nil
	case at.InfinityModifier != pgtype.Finite:
		return time.Time{}, fmt.Errorf("expires_at: %s, must be a time", at.InfinityModifier)
	case at.Time.Year() < 1970 || at.Time.Year() > 9999:
		return time.Time{}, fmt.Errorf("expires_at: year %d, must be from 1970 to 9999", at.Time.Year())
	}
	return at.Time, nil
}

func validateScope(tenant string) error {
	if tenant == limit.Wildcard {
		return nil
	}
	if plan, ok := strings.CutPrefix(tenant, limit.PlanPrefix); ok {
		return limit.ValidateName("tenant_id: plan", plan)
	}
	return limit.ValidateName("tenant_id", tenant)
}

func validateRoute(route string) error {
	if route == limit.Wildcard || route == limit.TenantRoute {
		return nil
	}
	return limit.ValidateName("route_id", route)
}

// validateKey checks that (tenant, route) can be a concrete key.
func validateKey(k limit.Key) error {
	if err := limit.ValidateName("tenant_id", k.Tenant); err != nil {
		return err
	}
	if k.Route == limit.TenantRoute {
		return nil
	}
	return limit.ValidateName("route_id", k.Route)
}

func value[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}

// share reads a share column.
func share(v int64) (limit.Share, error) {
	if v < 0 || v > int64(limit.Whole) {
		return 0, fmt.Errorf("share %d, must be from 0 to %d", v, limit.Whole)
	}
	return limit.Share(v), nil
}
