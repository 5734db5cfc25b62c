package ledger

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/jackc/pgx/v5"

	"partidor.dev/partidor/shared/limit"
	"partidor.dev/partidor/shared/rulesfile"
)

// PutRule creates or replaces the rule of (tenant, route). A rule that does not change keeps its revision.
func (p *Postgres) PutRule(ctx context.Context, e Edit, rule rulesfile.Rule) (d Diff[Rule], err error) {
	err = p.edit(ctx, "write rule of "+rule.Tenant+"/"+rule.Route, e, func(tx pgx.Tx) error {
		if d.Before, err = lockRule(ctx, tx, rule.Tenant, rule.Route, e.Condition); err != nil {
			return err
		}
		if err = upsertRules(ctx, tx, []rulesfile.Rule{rule}); err != nil {
			return err
		}
		d.After, err = optional(scanRule(tx.QueryRow(ctx, selectRule+`WHERE tenant_id = $1 AND route_id = $2`, rule.Tenant, rule.Route)))
		return err
	})
	return d, err
}

// DeleteRule hands the rule's keys to the next match. ErrNotFound where there is no such rule.
func (p *Postgres) DeleteRule(ctx context.Context, e Edit, tenant, route string) (d Diff[Rule], err error) {
	err = p.edit(ctx, "delete rule of "+tenant+"/"+route, e, func(tx pgx.Tx) error {
		if d.Before, err = lockRule(ctx, tx, tenant, route, e.Condition); err != nil {
			return err
		}
		if d.Before == nil {
			return ErrNotFound
		}
		_, err := tx.Exec(ctx, `DELETE FROM rate_limit_rule WHERE id = $1`, d.Before.ID)
		return err
	})
	return d, err
}

func lockRule(ctx context.Context, tx pgx.Tx, tenant, route string, c Condition) (*Rule, error) {
	rule, err := optional(scanRule(tx.QueryRow(ctx, selectRule+`WHERE tenant_id = $1 AND route_id = $2 FOR UPDATE`, tenant, route)))
	if err != nil {
		return nil, err
	}
	return rule, checkOf(c, rule, func(r *Rule) limit.Revision { return r.Revision })
}

// ruleRow is a rule as jsonb_to_recordset reads it: every column, so that a replaced rule keeps nothing of the old one.
type ruleRow struct {
	Tenant         string     `json:"tenant_id"`
	Route          string     `json:"route_id"`
	Capacity       int64      `json:"capacity"`
	Refill         *int64     `json:"refill_per_second"`
	Period         int64      `json:"refill_period_seconds"`
	Algorithm      string     `json:"algorithm"`
	WindowSeconds  *int64     `json:"window_seconds"`
	CalendarWindow *string    `json:"calendar_window"`
	Mode           string     `json:"mode"`
	OnError        string     `json:"on_error"`
	Prefetch       bool       `json:"prefetch"`
	Shards         int        `json:"shards"`
	MaxCost        *int64     `json:"max_cost"`
	HideHeaders    bool       `json:"hide_headers"`
	ExpiresAt      *time.Time `json:"expires_at"`
	Reason         string     `json:"reason"`
}

func rowOf(r *rulesfile.Rule) ruleRow {
	l := r.Limit(revisionZero)
	row := ruleRow{Tenant: r.Tenant, Route: r.Route, Capacity: l.Capacity, Period: l.PeriodSeconds, Algorithm: l.Algorithm.String(),
		Mode: l.Mode.String(), OnError: l.OnError.String(), Prefetch: l.Prefetch, Shards: max(l.Shards, 1), HideHeaders: l.HideHeaders,
		ExpiresAt: r.ExpiresAt, Reason: r.Reason}
	if l.Refill != 0 {
		row.Refill = &l.Refill
	}
	if l.WindowSeconds != 0 {
		row.WindowSeconds = &l.WindowSeconds
	}
	if l.MaxCost != 0 {
		row.MaxCost = &l.MaxCost
	}
	if w := l.Calendar.String(); w != "" {
		row.CalendarWindow = &w
	}
	return row
}

// upsertRules writes validated rules in one statement, however many they are.
func upsertRules(ctx context.Context, tx pgx.Tx, rules []rulesfile.Rule) error {
	rows := make([]ruleRow, len(rules))
	for i := range rules {
		if n := rules[i].RefillPerSecond; n > math.MaxInt32 {
			return &FieldError{Field: "refill_per_second", Reason: fmt.Sprintf("%d, the ledger holds at most %d: say it with a shorter period", n, math.MaxInt32)}
		}
		rows[i] = rowOf(&rules[i])
	}
	data, err := json.Marshal(rows)
	if err != nil {
		return err
	}
	_, err = tx.Exec(ctx, `INSERT INTO rate_limit_rule (tenant_id, route_id, capacity, refill_per_second, refill_period_seconds, algorithm,
			window_seconds, calendar_window, mode, on_error, prefetch, shards, max_cost, hide_headers, expires_at, reason)
		SELECT tenant_id, route_id, capacity, refill_per_second, refill_period_seconds, algorithm,
			window_seconds, calendar_window, mode, on_error, prefetch, shards, max_cost, hide_headers, expires_at, reason
		  FROM jsonb_to_recordset($1) AS r (tenant_id text, route_id text, capacity bigint, refill_per_second int, refill_period_seconds int,
			algorithm text, window_seconds int, calendar_window text, mode text, on_error text, prefetch boolean, shards int,
			max_cost bigint, hide_headers boolean, expires_at timestamptz, reason text)
		ON CONFLICT (tenant_id, route_id) DO UPDATE SET capacity = excluded.capacity, refill_per_second = excluded.refill_per_second,
			refill_period_seconds = excluded.refill_period_seconds, algorithm = excluded.algorithm,
			window_seconds = excluded.window_seconds, calendar_window = excluded.calendar_window, mode = excluded.mode,
			on_error = excluded.on_error, prefetch = excluded.prefetch, shards = excluded.shards,
			max_cost = excluded.max_cost, hide_headers = excluded.hide_headers, expires_at = excluded.expires_at, reason = excluded.reason`, data)
	return err
}

// RuleOfHistory reads a rule as the history keeps it.
func RuleOfHistory(data json.RawMessage) (rulesfile.Rule, error) {
	var row ruleRow
	if err := json.Unmarshal(data, &row); err != nil {
		return rulesfile.Rule{}, err
	}
	r := rulesfile.Rule{Tenant: row.Tenant, Route: row.Route, Capacity: row.Capacity, RefillPeriodSeconds: rulesfile.Period(row.Period),
		Prefetch: row.Prefetch, Shards: row.Shards, HideHeaders: row.HideHeaders, ExpiresAt: row.ExpiresAt}
	if row.Refill != nil {
		r.RefillPerSecond = *row.Refill
	}
	if row.MaxCost != nil {
		r.MaxCost = *row.MaxCost
	}
	if row.WindowSeconds != nil {
		r.WindowSeconds = *row.WindowSeconds
	}
	window := ""
	if row.CalendarWindow != nil {
		window = *row.CalendarWindow
	}
	return r, errors.Join(r.Algorithm.UnmarshalText([]byte(row.Algorithm)), r.Window.UnmarshalText([]byte(window)),
		r.Mode.UnmarshalText([]byte(row.Mode)), r.OnError.UnmarshalText([]byte(row.OnError)))
}
