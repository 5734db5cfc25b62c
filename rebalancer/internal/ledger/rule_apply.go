package ledger

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"partidor.dev/partidor/shared/limit"
	"partidor.dev/partidor/shared/rulesfile"
)

// RulePlan is what it takes to make the rules as they are declared.
type RulePlan struct {
	Create    []rulesfile.Rule       `json:"create"`
	Update    []Diff[rulesfile.Rule] `json:"update"`
	Delete    []rulesfile.Rule       `json:"delete"`
	Unchanged int                    `json:"unchanged"`
	// Revision of the rules as a whole before the change.
	Revision limit.Revision `json:"revision"`
}

// planningTime bounds how long a process that is stopped in the middle of applying rules keeps others from writing rules.
const planningTime = time.Minute

// ApplyRules makes the rules as declared, all or none, in one revision. With prune, rules that are not declared are
// deleted. The rules are valid and no key has two. The condition is about the revision of the rules as a whole.
func (p *Postgres) ApplyRules(ctx context.Context, e Edit, rules []rulesfile.Rule, prune bool) (plan RulePlan, err error) {
	err = p.edit(ctx, "apply rules", e, func(tx pgx.Tx) error {
		// Between its statements this transaction plans, for seconds where rules are hundreds of thousands. What it holds locked are
		// the rules, which no leader waits for.
		if _, err := tx.Exec(ctx, `SELECT set_config('idle_in_transaction_session_timeout', $1, true)`, fmt.Sprint(planningTime.Milliseconds())); err != nil {
			return err
		}
		// The plan must be what is done: nobody else writes rules meanwhile; readers are not held up.
		if _, err := tx.Exec(ctx, `LOCK TABLE rate_limit_rule IN SHARE ROW EXCLUSIVE MODE`); err != nil {
			return err
		}
		present, err := readRules(ctx, tx)
		if err != nil {
			return err
		}
		at, err := rulesRevision(ctx, tx, present)
		if err != nil {
			return err
		}
		if err := e.check(at, len(present) > 0 || e.Revision != nil); err != nil {
			return err
		}
		plan = PlanRules(present, rules, prune)
		plan.Revision = at
		write := slices.Clone(plan.Create)
		for _, u := range plan.Update {
			write = append(write, *u.After)
		}
		if len(write) > 0 {
			if err := upsertRules(ctx, tx, write); err != nil {
				return err
			}
		}
		tenants, routes := make([]string, 0, len(plan.Delete)), make([]string, 0, len(plan.Delete))
		for _, r := range plan.Delete {
			tenants, routes = append(tenants, r.Tenant), append(routes, r.Route)
		}
		_, err = tx.Exec(ctx, `DELETE FROM rate_limit_rule r USING unnest($1::text[], $2::text[]) AS d (tenant_id, route_id)
			WHERE r.tenant_id = d.tenant_id AND r.route_id = d.route_id`, tenants, routes)
		return err
	})
	return plan, err
}

// rulesRevision is when any rule was last written or deleted.
func rulesRevision(ctx context.Context, tx pgx.Tx, present []Rule) (at limit.Revision, err error) {
	err = tx.QueryRow(ctx, `SELECT revision_epoch, revision_number FROM tombstone WHERE kind = 'rule'
		ORDER BY revision_epoch DESC, revision_number DESC LIMIT 1`).Scan(&at.Epoch, &at.Number)
	if errors.Is(err, pgx.ErrNoRows) {
		err = nil
	}
	for i := range present {
		at = at.Max(present[i].Revision)
	}
	return at, err
}

func readRules(ctx context.Context, tx pgx.Tx) ([]Rule, error) {
	rows, err := tx.Query(ctx, selectRule+`ORDER BY tenant_id, route_id`)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (Rule, error) { return scanRule(row) })
}

// PlanRules compares what is there with what is declared.
func PlanRules(present []Rule, declared []rulesfile.Rule, prune bool) RulePlan {
	plan := RulePlan{Create: []rulesfile.Rule{}, Update: []Diff[rulesfile.Rule]{}, Delete: []rulesfile.Rule{}}
	at := make(map[[2]string]*Rule, len(present))
	for i := range present {
		at[[2]string{present[i].Tenant, present[i].Route}] = &present[i]
	}
	for _, want := range declared {
		key := [2]string{want.Tenant, want.Route}
		have, ok := at[key]
		delete(at, key)
		switch {
		case !ok:
			plan.Create = append(plan.Create, want)
		case same(&have.Rule, &want):
			plan.Unchanged++
		default:
			before := normal(&have.Rule)
			plan.Update = append(plan.Update, Diff[rulesfile.Rule]{Before: &before, After: &want})
		}
	}
	if prune {
		for i := range present {
			if r := &present[i]; at[[2]string{r.Tenant, r.Route}] != nil {
				plan.Delete = append(plan.Delete, normal(&r.Rule))
			}
		}
	}
	return plan
}

// normal is a rule without what is default and without its reason.
func normal(r *rulesfile.Rule) rulesfile.Rule {
	return rulesfile.Of(r.Tenant, r.Route, r.Limit(revisionZero))
}

// same tells whether two rules of one key say the same; why they say it does not matter.
func same(a, b *rulesfile.Rule) bool {
	l, m := *a.Limit(revisionZero), *b.Limit(revisionZero)
	l.Shards, m.Shards = max(l.Shards, 1), max(m.Shards, 1)
	if !l.ExpiresAt.Equal(m.ExpiresAt) {
		return false
	}
	l.ExpiresAt, m.ExpiresAt = time.Time{}, time.Time{}
	return l == m
}
