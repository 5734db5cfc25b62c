package rules

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"

	"partidor.dev/partidor/gateway/internal/snapshot"
	"partidor.dev/partidor/shared/limit"
)

// Ledger reads the rules from PostgreSQL, a primary or a replica of it. It never writes.
type Ledger struct {
	pool   *pgxpool.Pool
	region string
	floor  limit.Share
}

// NewLedger reads through pool for a gateway of region. floor is the part of its base share, in parts per million, that a
// region keeps where the ledger says nothing else.
func NewLedger(pool *pgxpool.Pool, region string, floor limit.Share) *Ledger {
	return &Ledger{pool: pool, region: region, floor: floor}
}

// Name is the kind of source.
func (l *Ledger) Name() string { return "postgres" }

// Read takes everything in one snapshot of the database.
func (l *Ledger) Read(ctx context.Context, since limit.Revision) (*Increment, error) {
	var inc *Increment
	err := pgx.BeginTxFunc(ctx, l.pool, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) (err error) {
		inc, err = l.read(ctx, tx, since)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read rules from postgres: %w", err)
	}
	return inc, nil
}

func (l *Ledger) read(ctx context.Context, tx pgx.Tx, since limit.Revision) (*Increment, error) {
	r := &reading{ctx: ctx, tx: tx, Increment: new(Increment)}
	if err := tx.QueryRow(ctx, queryRevision).Scan(&r.Reached.Epoch, &r.Reached.Number); err != nil {
		return nil, err
	}
	switch {
	case since.Newer(r.Reached):
		// A replica that lags, or still follows the time line before a fail-over. Nothing of it is news.
		r.Behind = true
		return r.Increment, nil
	case since.Epoch == r.Reached.Epoch:
		r.since = since
	default:
		// Another epoch: the database may have forgotten what this gateway has seen.
		r.Whole, r.since = true, limit.Revision{Epoch: -1}
		if err := r.makeRoom(); err != nil {
			return nil, err
		}
	}
	read := []func() error{r.rules, r.tenants, r.keys, r.tombstones, func() error { return r.moved(l.region) }}
	if since == r.Reached {
		read = nil
	}
	read = append(read, func() error { return r.parameters(l.floor) }, func() error { return r.regions(l.region) })
	for _, part := range read {
		if err := part(); err != nil {
			return nil, err
		}
	}
	return r.Increment, nil
}

// maxRoom bounds what an estimate is believed for.
const maxRoom = 4 << 20

// reading is one increment in the making.
type reading struct {
	*Increment
	ctx   context.Context
	tx    pgx.Tx
	since limit.Revision
	floor limit.Share // parts per million of a region's base share
}

// each runs query and calls row after every row has been scanned into fields.
func (r *reading) each(query string, args, fields []any, row func()) error {
	rows, err := r.tx.Query(r.ctx, query, args...)
	if err != nil {
		return err
	}
	_, err = pgx.ForEachRow(rows, fields, func() error { row(); return nil })
	return err
}

// makeRoom prepares for as many rules as there probably are: growing step by step would cost as much as reading.
func (r *reading) makeRoom() error {
	var estimate int64
	if err := r.tx.QueryRow(r.ctx, queryEstimate).Scan(&estimate); err != nil {
		return err
	}
	r.Rules = make([]snapshot.RuleEntry, 0, min(max(estimate, 0)+1024, maxRoom))
	return nil
}

func (r *reading) news() []any { return []any{r.since.Epoch, r.since.Number} }

// at is a row's revision, at least the epoch in force.
func (r *reading) at(row limit.Revision) limit.Revision {
	return row.Max(limit.Revision{Epoch: r.Reached.Epoch})
}

func (r *reading) bad(f Fault) { r.Faults = append(r.Faults, f) }

func (r *reading) rules() error {
	var row ruleRow
	fields := []any{&row.Tenant, &row.Route, &row.Capacity, &row.Refill, &row.PeriodSeconds, &row.Algorithm, &row.WindowSeconds,
		&row.CalendarWindow, &row.Mode, &row.OnError, &row.Prefetch, &row.Shards, &row.MaxCost, &row.HideHeaders, &row.ExpiresAt,
		&row.Revision.Epoch, &row.Revision.Number}
	return r.each(queryRules, r.news(), fields, func() {
		row.Revision = r.at(row.Revision)
		e, err := row.entry()
		if err != nil {
			r.bad(Fault{Table: tableRule, Tenant: row.Tenant, Route: row.Route, Err: err})
			return
		}
		r.Rules = append(r.Rules, e)
	})
}

func (r *reading) tenants() error {
	var p snapshot.PlanEntry
	return r.each(queryTenants, r.news(), []any{&p.Tenant, &p.Plan, &p.Revision.Epoch, &p.Revision.Number}, func() {
		err := limit.ValidateName("id", p.Tenant)
		if err == nil && p.Plan != "" {
			err = limit.ValidateName("plan", p.Plan)
		}
		if err != nil {
			r.bad(Fault{Table: tableTenant, Tenant: p.Tenant, Err: err})
			return
		}
		r.Plans = append(r.Plans, snapshot.PlanEntry{Tenant: p.Tenant, Plan: p.Plan, Revision: r.at(p.Revision)})
	})
}

func (r *reading) keys() error {
	var (
		hash    []byte
		k       snapshot.APIKey
		expires pgtype.Timestamptz
	)
	return r.each(queryKeys, r.news(), []any{&hash, &k.Tenant, &k.Enabled, &expires, &k.Revision.Epoch, &k.Revision.Number}, func() {
		key := Key{APIKey: k}
		key.Revision = r.at(k.Revision)
		var late error
		key.ExpiresAt, late = end(expires)
		err := errors.Join(late, limit.ValidateName("tenant_id", k.Tenant))
		if n := copy(key.Hash[:], hash); err == nil && (n != len(key.Hash) || n != len(hash)) {
			err = fmt.Errorf("hash: %d bytes, a SHA-256 has %d", len(hash), len(key.Hash))
		}
		if err != nil {
			r.bad(Fault{Table: tableKey, Hash: key.Hash, Err: err})
			return
		}
		r.Keys = append(r.Keys, key)
	})
}

func (r *reading) tombstones() error {
	var (
		kind, tenant, route, name string
		at                        limit.Revision
	)
	return r.each(queryTombstones, r.news(), []any{&kind, &tenant, &route, &name, &at.Epoch, &at.Number}, func() {
		at := r.at(at)
		switch kind {
		case "rule":
			r.Rules = append(r.Rules, snapshot.RuleEntry{Tenant: tenant, Route: route, Revision: at})
		case "tenant":
			r.Plans = append(r.Plans, snapshot.PlanEntry{Tenant: tenant, Revision: at})
		case "api_key":
			k := Key{APIKey: snapshot.APIKey{Revision: at}}
			if n, err := hex.Decode(k.Hash[:], []byte(name)[:min(len(name), 64)]); err == nil && n == len(k.Hash) {
				r.Keys = append(r.Keys, k)
			}
		}
	})
}

func (r *reading) moved(region string) error {
	var (
		key  limit.Key
		base int64
	)
	return r.each(queryMoved, append(r.news(), region), []any{&key.Tenant, &key.Route, &base}, func() {
		s, err := share(base)
		if err = errors.Join(err, validateKey(key)); err != nil {
			r.bad(Fault{Table: tableSplit, Tenant: key.Tenant, Route: key.Route, Err: err})
			return
		}
		r.Moved = append(r.Moved, Moved{Key: key, Base: s})
	})
}
