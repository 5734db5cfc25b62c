package ledger

import (
	"time"

	"github.com/jackc/pgx/v5"

	"partidor.dev/partidor/shared/limit"
	"partidor.dev/partidor/shared/rulesfile"
)

// Rule is one row of rate_limit_rule.
type Rule struct {
	rulesfile.Rule
	ID        int64          `json:"id"`
	Revision  limit.Revision `json:"revision"`
	UpdatedAt time.Time      `json:"updated_at"`
	UpdatedBy string         `json:"updated_by"`
}

const selectRule = `SELECT id, tenant_id, route_id, capacity, coalesce(refill_per_second, 0), refill_period_seconds, algorithm,
	coalesce(window_seconds, 0), coalesce(calendar_window, ''), mode, on_error, prefetch, shards, coalesce(max_cost, 0), hide_headers, expires_at,
	reason, updated_at, updated_by, revision_epoch, revision_number FROM rate_limit_rule `

func scanRule(row pgx.Row) (Rule, error) {
	var (
		r                                Rule
		algorithm, window, mode, onError string
	)
	err := row.Scan(&r.ID, &r.Tenant, &r.Route, &r.Capacity, &r.RefillPerSecond, &r.RefillPeriodSeconds, &algorithm,
		&r.WindowSeconds, &window, &mode, &onError, &r.Prefetch, &r.Shards, &r.MaxCost, &r.HideHeaders, &r.ExpiresAt,
		&r.Reason, &r.UpdatedAt, &r.UpdatedBy, &r.Revision.Epoch, &r.Revision.Number)
	if err != nil {
		return r, err
	}
	for _, word := range []struct {
		field interface{ UnmarshalText([]byte) error }
		text  string
	}{{&r.Algorithm, algorithm}, {&r.Window, window}, {&r.Mode, mode}, {&r.OnError, onError}} {
		if err := word.field.UnmarshalText([]byte(word.text)); err != nil {
			return r, err
		}
	}
	return r, nil
}
