package ledger

import (
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
)

var (
	// ErrFenced: the term of the write is no longer the leader's. Nothing was written.
	ErrFenced = errors.New("fenced: another rebalancer leads")
	// ErrNotFound: there is no such row.
	ErrNotFound = errors.New("not found")
	// ErrConflict: the row is no longer what the writer has seen. Nothing was written.
	ErrConflict = errors.New("changed by somebody else in the meantime")
	// ErrReadOnly: this ledger takes its rules from a file.
	ErrReadOnly = errors.New("edit the rules file instead")
)

// FieldError is a value that the ledger refuses. Nothing was written.
type FieldError struct {
	Field  string
	Reason string
}

func (e *FieldError) Error() string { return e.Field + ": " + e.Reason }

// constraintFields names the field behind each CHECK of the schema, for writers who find out only there.
var constraintFields = map[string]string{
	"rule_tenant_id": "tenant", "rule_route_id": "route", "rule_capacity_positive": "capacity", "rule_capacity_max": "capacity",
	"rule_log_capacity": "capacity", "rule_refill_positive": "refill_per_second", "rule_refill_max": "refill_per_second",
	"rule_refill_required": "refill_per_second", "rule_refill_period": "refill_period_seconds", "rule_algorithm": "algorithm",
	"rule_window": "window", "rule_window_seconds": "window_seconds", "rule_calendar_window": "window", "rule_mode": "mode",
	"rule_on_error": "on_error", "rule_prefetch": "prefetch", "rule_shards": "shards", "rule_shard_capacity": "shards", "rule_shards_of_tenant": "shards", "rule_shards_and_tenant": "shards", "rule_max_cost": "max_cost",
	"tenant_id_name": "id", "tenant_plan_name": "plan", "api_key_tenant": "tenant", "api_key_hash_sha256": "sha256",
	"region_name": "name", "region_base_share": "base", "region_base_sum": "regions", "region_published_sum": "regions",
	"region_published_share": "base", "split_base_share": "split", "split_observed_share": "split",
	"rule_expires_at": "expires_at", "api_key_expires_at": "expires_at",
	"region_floor_share": "floor", "region_state": "state", "split_target_share": "split", "split_target_sum": "split",
	"split_pinned_share": "pin", "split_pin_expires_at": "expires_at", "split_key": "tenant", "split_base_kept": "split", "parameter_name": "name",
}

// wrap gives PostgreSQL's refusals their meaning and says what was attempted.
func wrap(attempt string, err error) error {
	if err == nil {
		return nil
	}
	var pg *pgconn.PgError
	if !errors.As(err, &pg) {
		return fmt.Errorf("%s: %w", attempt, err)
	}
	if pg.Code == "PD001" {
		return fmt.Errorf("%s: %w (%s)", attempt, ErrFenced, pg.Message)
	}
	if strings.HasPrefix(pg.Code, "23") { // integrity constraint violations
		if field, ok := constraintFields[pg.ConstraintName]; ok {
			return fmt.Errorf("%s: %w", attempt, &FieldError{Field: field, Reason: pg.Message})
		}
	}
	if strings.HasPrefix(pg.Code, "22") { // data exceptions: numbers out of range, text with a NUL
		return fmt.Errorf("%s: %w", attempt, &FieldError{Field: "value", Reason: pg.Message})
	}
	return fmt.Errorf("%s: %w", attempt, err)
}
