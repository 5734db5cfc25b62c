package ledger

import (
	"context"
	"encoding/hex"
	"time"

	"github.com/jackc/pgx/v5"

	"partidor.dev/partidor/shared/limit"
)

// Tenant is who calls.
type Tenant struct {
	ID        string         `json:"id"`
	Plan      string         `json:"plan,omitempty"`
	UpdatedAt time.Time      `json:"updated_at"`
	UpdatedBy string         `json:"updated_by"`
	Revision  limit.Revision `json:"revision"`
}

// APIKey is a credential; the key itself is not known.
type APIKey struct {
	// Hash is the SHA-256 in hex, the name of the key in the API.
	Hash      string         `json:"sha256"`
	Tenant    string         `json:"tenant"`
	Label     string         `json:"label,omitempty"`
	Enabled   bool           `json:"enabled"`
	ExpiresAt *time.Time     `json:"expires_at,omitempty"`
	CreatedAt time.Time      `json:"created_at"`
	Revision  limit.Revision `json:"revision"`
}

const (
	selectTenant = `SELECT id, plan, updated_at, updated_by, revision_epoch, revision_number FROM tenant `
	keyColumns   = `encode(hash, 'hex'), tenant_id, label, enabled, expires_at, created_at, revision_epoch, revision_number`
)

func scanTenant(row pgx.CollectableRow) (t Tenant, err error) {
	err = row.Scan(&t.ID, &t.Plan, &t.UpdatedAt, &t.UpdatedBy, &t.Revision.Epoch, &t.Revision.Number)
	return t, err
}

func scanKey(row pgx.CollectableRow) (k APIKey, err error) {
	err = row.Scan(&k.Hash, &k.Tenant, &k.Label, &k.Enabled, &k.ExpiresAt, &k.CreatedAt, &k.Revision.Epoch, &k.Revision.Number)
	return k, err
}

// Tenants in the order of their ids; of one plan only, unless plan is empty.
func (p *Postgres) Tenants(ctx context.Context, f Filter, plan string) (list []Tenant, err error) {
	err = p.snapshot(ctx, "list tenants", func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, selectTenant+`WHERE ($1 = '' OR id = $1) AND ($2 = '' OR plan = $2) AND ($3 = '' OR strpos(id, $3) > 0) AND id > $4
			ORDER BY id LIMIT $5`, f.Tenant, plan, f.Part, f.After[0], f.Limit)
		if err != nil {
			return err
		}
		list, err = pgx.CollectRows(rows, scanTenant)
		return err
	})
	return list, err
}

// PutTenant creates a tenant or changes its plan.
func (p *Postgres) PutTenant(ctx context.Context, e Edit, id, plan string) (d Diff[Tenant], err error) {
	err = p.edit(ctx, "write tenant "+id, e, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, selectTenant+`WHERE id = $1 FOR UPDATE`, id)
		if err != nil {
			return err
		}
		if d.Before, err = optional(pgx.CollectOneRow(rows, scanTenant)); err != nil {
			return err
		}
		if err := checkOf(e.Condition, d.Before, tenantRevision); err != nil {
			return err
		}
		if _, err = tx.Exec(ctx, `INSERT INTO tenant (id, plan) VALUES ($1, $2) ON CONFLICT (id) DO UPDATE SET plan = excluded.plan`, id, plan); err != nil {
			return err
		}
		if rows, err = tx.Query(ctx, selectTenant+`WHERE id = $1`, id); err != nil {
			return err
		}
		d.After, err = optional(pgx.CollectOneRow(rows, scanTenant))
		return err
	})
	return d, err
}

// DeleteTenant forgets a tenant and its keys. Rules written for it stay: they are said of a name.
func (p *Postgres) DeleteTenant(ctx context.Context, e Edit, id string) (d Diff[Tenant], err error) {
	err = p.edit(ctx, "delete tenant "+id, e, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, `DELETE FROM tenant WHERE id = $1 RETURNING id, plan, updated_at, updated_by, revision_epoch, revision_number`, id)
		if err != nil {
			return err
		}
		if d.Before, err = optional(pgx.CollectOneRow(rows, scanTenant)); err == nil && d.Before == nil {
			err = ErrNotFound
		}
		if err != nil {
			return err
		}
		return checkOf(e.Condition, d.Before, tenantRevision)
	})
	return d, err
}

func tenantRevision(t *Tenant) limit.Revision { return t.Revision }

// Keys of a tenant, or of all, in the order of their hashes.
func (p *Postgres) Keys(ctx context.Context, f Filter) (list []APIKey, err error) {
	err = p.snapshot(ctx, "list keys", func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, `SELECT `+keyColumns+` FROM api_key WHERE ($1 = '' OR tenant_id = $1)
			AND ($2 = '' OR strpos(tenant_id, $2) > 0 OR strpos(label, $2) > 0) AND encode(hash, 'hex') > $3 ORDER BY 1 LIMIT $4`,
			f.Tenant, f.Part, f.After[0], f.Limit)
		if err != nil {
			return err
		}
		list, err = pgx.CollectRows(rows, scanKey)
		return err
	})
	return list, err
}

// CreateKey lets a credential stand for a tenant that exists.
func (p *Postgres) CreateKey(ctx context.Context, e Edit, hash [32]byte, k APIKey) (out APIKey, err error) {
	err = p.edit(ctx, "create key of "+k.Tenant, e, func(tx pgx.Tx) error {
		if err := e.check(limit.Revision{}, false); err != nil {
			return err
		}
		out, err = insertKey(ctx, tx, hash, k)
		return err
	})
	return out, err
}

func insertKey(ctx context.Context, tx pgx.Tx, hash [32]byte, k APIKey) (APIKey, error) {
	rows, err := tx.Query(ctx, `INSERT INTO api_key (hash, tenant_id, label, expires_at) VALUES ($1, $2, $3, $4) RETURNING `+keyColumns,
		hash[:], k.Tenant, k.Label, k.ExpiresAt)
	if err != nil {
		return APIKey{}, err
	}
	return pgx.CollectOneRow(rows, scanKey)
}

// RotateKey creates a successor with the same tenant, label and end, and lets the old key end after grace.
func (p *Postgres) RotateKey(ctx context.Context, e Edit, old string, successor [32]byte, grace time.Duration) (out APIKey, err error) {
	err = p.edit(ctx, "rotate key", e, func(tx pgx.Tx) error {
		before, err := lockKey(ctx, tx, old, e.Condition)
		if err != nil {
			return err
		}
		if !before.Enabled {
			return &FieldError{Field: "sha256", Reason: "the key has been revoked"}
		}
		if _, err := tx.Exec(ctx, `UPDATE api_key SET expires_at = least(expires_at, now() + $2) WHERE hash = decode($1, 'hex')`, old, grace); err != nil {
			return err
		}
		out, err = insertKey(ctx, tx, successor, before)
		return err
	})
	return out, err
}

// RevokeKey ends a key at once and for good; it stays known, so that the history can name it.
func (p *Postgres) RevokeKey(ctx context.Context, e Edit, hash string) (d Diff[APIKey], err error) {
	err = p.edit(ctx, "revoke key", e, func(tx pgx.Tx) error {
		before, err := lockKey(ctx, tx, hash, e.Condition)
		if err != nil {
			return err
		}
		d.Before = &before
		rows, err := tx.Query(ctx, `UPDATE api_key SET enabled = false WHERE hash = decode($1, 'hex') RETURNING `+keyColumns, hash)
		if err != nil {
			return err
		}
		d.After, err = optional(pgx.CollectOneRow(rows, scanKey))
		return err
	})
	return d, err
}

func lockKey(ctx context.Context, tx pgx.Tx, hash string, c Condition) (APIKey, error) {
	if raw, err := hex.DecodeString(hash); err != nil || len(raw) != 32 {
		return APIKey{}, &FieldError{Field: "sha256", Reason: "must be 64 hex digits"}
	}
	rows, err := tx.Query(ctx, `SELECT `+keyColumns+` FROM api_key WHERE hash = decode($1, 'hex') FOR UPDATE`, hash)
	if err != nil {
		return APIKey{}, err
	}
	k, err := optional(pgx.CollectOneRow(rows, scanKey))
	if err != nil {
		return APIKey{}, err
	}
	if k == nil {
		return APIKey{}, ErrNotFound
	}
	return *k, c.check(k.Revision, true)
}
