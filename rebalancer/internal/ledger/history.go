package ledger

import (
	"context"
	"encoding/json"
	"time"

	"github.com/jackc/pgx/v5"

	"partidor.dev/partidor/shared/limit"
)

// Entry is one change: who, when, why, before, after.
type Entry struct {
	ID        int64           `json:"id"`
	Kind      string          `json:"kind"` // rule, tenant, api_key, region, parameter, split, pin
	At        time.Time       `json:"at"`
	Operation string          `json:"operation"`
	Tenant    string          `json:"tenant,omitempty"`
	Route     string          `json:"route,omitempty"`
	Name      string          `json:"name,omitempty"`
	Actor     string          `json:"actor"`
	Reason    string          `json:"reason,omitempty"`
	Before    json.RawMessage `json:"before,omitempty"`
	After     json.RawMessage `json:"after,omitempty"`
	Revision  limit.Revision  `json:"revision,omitzero"`
	Term      int64           `json:"term,omitempty"`
	Cycle     int64           `json:"cycle,omitempty"`
}

// HistoryFilter says which entries are wanted; empty fields do not matter.
type HistoryFilter struct {
	Kinds               []string
	Tenant, Route, Name string
	Actor               string
	// Before is the id below which the page begins; 0 for the newest.
	Before int64
	Limit  int
}

const selectHistory = `SELECT id, kind, at, operation, tenant_id, route_id, name, actor, reason, before, after,
	revision_epoch, revision_number, coalesce(term, 0), coalesce(cycle, 0) FROM history `

func scanEntry(row pgx.CollectableRow) (e Entry, err error) {
	err = row.Scan(&e.ID, &e.Kind, &e.At, &e.Operation, &e.Tenant, &e.Route, &e.Name, &e.Actor, &e.Reason, &e.Before, &e.After,
		&e.Revision.Epoch, &e.Revision.Number, &e.Term, &e.Cycle)
	return e, err
}

// History is newest first.
func (p *Postgres) History(ctx context.Context, f HistoryFilter) (list []Entry, err error) {
	if f.Kinds == nil {
		f.Kinds = []string{}
	}
	err = p.snapshot(ctx, "read history", func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, selectHistory+`
			WHERE (cardinality($1::text[]) = 0 OR kind = ANY ($1)) AND ($2 = '' OR tenant_id = $2) AND ($3 = '' OR route_id = $3)
			  AND ($4 = '' OR name = $4) AND ($5 = '' OR actor = $5) AND ($6 = 0 OR id < $6)
			ORDER BY id DESC LIMIT $7`, f.Kinds, f.Tenant, f.Route, f.Name, f.Actor, f.Before, f.Limit)
		if err != nil {
			return err
		}
		list, err = pgx.CollectRows(rows, scanEntry)
		return err
	})
	return list, err
}

// HistoryEntry is one of them; ErrNotFound where it has been aged out or never was.
func (p *Postgres) HistoryEntry(ctx context.Context, id int64) (Entry, error) {
	var entry *Entry
	err := p.snapshot(ctx, "read history", func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, selectHistory+`WHERE id = $1`, id)
		if err != nil {
			return err
		}
		if entry, err = optional(pgx.CollectOneRow(rows, scanEntry)); err == nil && entry == nil {
			err = ErrNotFound
		}
		return err
	})
	if err != nil {
		return Entry{}, err
	}
	return *entry, nil
}

// Age drops history older than keep, in small bites, and tells how many entries went. What a temporary rule in force has
// replaced stays, however long it lasts: it will be needed to end it. Only the leader of term may.
func (p *Postgres) Age(ctx context.Context, term int64, keep time.Duration) (dropped int64, err error) {
	const bite = 10_000
	for {
		var n int64
		err := p.change(ctx, "age history", Author{}, func(tx pgx.Tx) error {
			tag, err := tx.Exec(ctx, `DELETE FROM history WHERE (kind, id) IN
				(SELECT kind, id FROM history h WHERE at < now() - $1::interval AND NOT (`+givesEnd+`
					AND EXISTS (SELECT FROM rate_limit_rule r WHERE r.tenant_id = h.tenant_id AND r.route_id = h.route_id AND r.expires_at IS NOT NULL))
				 ORDER BY id LIMIT $2)`, keep, bite)
			if err != nil {
				return err
			}
			n = tag.RowsAffected()
			return fence(ctx, tx, term)
		})
		dropped += n
		if err != nil || n < bite {
			return dropped, err
		}
	}
}
