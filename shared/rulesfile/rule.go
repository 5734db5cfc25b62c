package rulesfile

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/goccy/go-yaml/ast"

	"partidor.dev/partidor/shared/config"
	"partidor.dev/partidor/shared/limit"
)

// Rule is one rule as people write it, in the file and in the admin API. Fields that are left out have limit.Rule's
// defaults; a rule whose mode is block or unlimited needs no numbers.
type Rule struct {
	// Tenant is a tenant, "@" and a plan, or "*"; Route is a route, "*" or limit.TenantRoute.
	Tenant              string          `yaml:"tenant" json:"tenant"`
	Route               string          `yaml:"route" json:"route"`
	Capacity            int64           `yaml:"capacity,omitempty" json:"capacity,omitempty"`
	RefillPerSecond     int64           `yaml:"refill_per_second,omitempty" json:"refill_per_second,omitempty"`
	RefillPeriodSeconds Period          `yaml:"refill_period_seconds,omitempty" json:"refill_period_seconds,omitempty"`
	Algorithm           limit.Algorithm `yaml:"algorithm,omitempty" json:"algorithm,omitempty"`
	WindowSeconds       int64           `yaml:"window_seconds,omitempty" json:"window_seconds,omitempty"`
	Window              limit.Calendar  `yaml:"window,omitempty" json:"window,omitempty"`
	Mode                limit.Mode      `yaml:"mode,omitempty" json:"mode,omitempty"`
	OnError             limit.OnError   `yaml:"on_error,omitempty" json:"on_error,omitempty"`
	Prefetch            bool            `yaml:"prefetch,omitempty" json:"prefetch,omitempty"`
	Shards              int             `yaml:"shards,omitempty" json:"shards,omitempty"`
	MaxCost             int64           `yaml:"max_cost,omitempty" json:"max_cost,omitempty"`
	HideHeaders         bool            `yaml:"hide_headers,omitempty" json:"hide_headers,omitempty"`
	ExpiresAt           *time.Time      `yaml:"expires_at,omitempty" json:"expires_at,omitempty"`
	Reason              string          `yaml:"reason,omitempty" json:"reason,omitempty"`
}

// Period is the seconds of a refill. Left out it is one second; the zero value means that, and cannot be written.
type Period int64

// UnmarshalJSON refuses an explicit 0, which would otherwise pass for one second.
func (p *Period) UnmarshalJSON(b []byte) error {
	var n *int64
	if err := json.Unmarshal(b, &n); err != nil {
		return err
	}
	switch {
	case n == nil:
	case *n == 0:
		return errPeriodZero
	default:
		*p = Period(*n)
	}
	return nil
}

// UnmarshalYAML refuses it too.
func (p *Period) UnmarshalYAML(node ast.Node) error {
	var n int64
	if err := config.DecodeNode(node, &n); err != nil {
		return err
	}
	if n == 0 {
		return fmt.Errorf("0, must be from 1 to %d", limit.MaxPeriodSeconds)
	}
	*p = Period(n)
	return nil
}

var errPeriodZero = fmt.Errorf("refill_period_seconds: 0, must be from 1 to %d", limit.MaxPeriodSeconds)

// Limit is the rule in the form that decides. Call Validate first.
func (r *Rule) Limit(revision limit.Revision) *limit.Rule {
	l := &limit.Rule{
		Capacity: r.Capacity, Refill: r.RefillPerSecond, PeriodSeconds: int64(r.RefillPeriodSeconds),
		Algorithm: r.Algorithm, WindowSeconds: r.WindowSeconds, Calendar: r.Window,
		Mode: r.Mode, OnError: r.OnError, Prefetch: r.Prefetch, Shards: r.Shards, MaxCost: r.MaxCost, HideHeaders: r.HideHeaders,
		Revision: revision,
	}
	if l.PeriodSeconds == 0 {
		l.PeriodSeconds = 1
	}
	if r.Mode == limit.Block || r.Mode == limit.Unlimited {
		l.Capacity = max(l.Capacity, 1)
		if l.Algorithm == limit.TokenBucket {
			l.Refill = max(l.Refill, 1)
		}
	}
	if r.ExpiresAt != nil {
		l.ExpiresAt = *r.ExpiresAt
	}
	return l
}

// Of is the rule in the form people write, without what is default.
func Of(tenant, route string, l *limit.Rule) Rule {
	r := Rule{
		Tenant: tenant, Route: route, Capacity: l.Capacity, RefillPerSecond: l.Refill, RefillPeriodSeconds: Period(l.PeriodSeconds),
		Algorithm: l.Algorithm, WindowSeconds: l.WindowSeconds, Window: l.Calendar,
		Mode: l.Mode, OnError: l.OnError, Prefetch: l.Prefetch, Shards: l.Shards, MaxCost: l.MaxCost, HideHeaders: l.HideHeaders,
	}
	if r.RefillPeriodSeconds == 1 {
		r.RefillPeriodSeconds = 0
	}
	if r.Shards == 1 {
		r.Shards = 0
	}
	if !l.ExpiresAt.IsZero() {
		at := l.ExpiresAt.UTC()
		r.ExpiresAt = &at
	}
	return r
}

// Validate reports every fault, each beginning with the name of its field.
func (r *Rule) Validate() error {
	var errs []error
	if err := validateTenant(r.Tenant); err != nil {
		errs = append(errs, err)
	}
	if r.Route != limit.Wildcard && r.Route != limit.TenantRoute {
		if err := limit.ValidateName("route", r.Route); err != nil {
			errs = append(errs, err)
		}
	}
	if r.Route == limit.TenantRoute && r.Shards > 1 {
		errs = append(errs, fmt.Errorf("shards: not for %s, whose bucket is charged together with the route's", limit.TenantRoute))
	}
	if err := validateEnd(r.ExpiresAt); err != nil {
		errs = append(errs, err)
	}
	if err := r.negative(); err != nil {
		errs = append(errs, err)
	} else if err := r.Limit(limit.Revision{}).Validate(); err != nil {
		errs = append(errs, split(err)...)
	}
	return errors.Join(errs...)
}

// negative refuses numbers that the defaults of block and unlimited would hide.
func (r *Rule) negative() error {
	switch {
	case r.Capacity < 0:
		return fmt.Errorf("capacity: %d, must be at least 1 (to refuse everything say mode: block, to limit nothing mode: unlimited)", r.Capacity)
	case r.RefillPerSecond < 0:
		return fmt.Errorf("refill_per_second: %d, must be at least 1 (to refuse everything say mode: block, to limit nothing mode: unlimited)", r.RefillPerSecond)
	}
	return nil
}

// validateEnd refuses times that would be taken for no end at all, or that neither JSON nor the ledger can say.
func validateEnd(at *time.Time) error {
	if at != nil && (at.UTC().Year() < 1970 || at.UTC().Year() > 9999) {
		return errors.New("expires_at: must be a time from 1970 to 9999")
	}
	return nil
}

func validateTenant(tenant string) error {
	if tenant == limit.Wildcard {
		return nil
	}
	if plan, ok := cutPlan(tenant); ok {
		if err := limit.ValidateName("tenant: plan", plan); err != nil {
			return err
		}
		if len(tenant) > limit.MaxNameBytes {
			return fmt.Errorf("tenant: %d bytes, at most %d with the %q of a plan", len(tenant), limit.MaxNameBytes, limit.PlanPrefix)
		}
		return nil
	}
	return limit.ValidateName("tenant", tenant)
}

func cutPlan(tenant string) (string, bool) {
	if len(tenant) > 0 && tenant[:1] == limit.PlanPrefix {
		return tenant[1:], true
	}
	return "", false
}

// split takes joined errors apart, so that each can be given its line.
func split(err error) []error {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		return joined.Unwrap()
	}
	return []error{err}
}
