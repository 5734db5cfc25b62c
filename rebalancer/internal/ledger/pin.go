package ledger

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"partidor.dev/partidor/shared/limit"
)

// Pins fixes shares of one key by an operator's word. Regions that are not named stay free.
type Pins struct {
	Shares limit.Split `json:"shares"`
	// Expires ends the pins; the zero time does not.
	Expires time.Time `json:"expires_at,omitzero"`
	// Revision of the last change of the key's pins. It is not the ledger's: gateways do not read pins.
	Revision limit.Revision `json:"revision,omitzero"`
}

// pinRevision of the entry of the history that tells of the last change; 0.0 where there is none.
func pinRevision(entry int64) limit.Revision { return limit.Revision{Number: entry} }

// PutPins replaces the pins of a key; none at all unpin it. Shares still move by transfers only: the next plan, at once,
// advises towards the pins. Operation is what the history calls it: pin, unpin, set or rollback.
func (p *Postgres) PutPins(ctx context.Context, e Edit, key limit.Key, pins Pins, operation string) (d Diff[Pins], err error) {
	err = p.edit(ctx, "pin "+key.String(), e, func(tx pgx.Tx) error {
		regions, err := readRegions(ctx, tx, ` FOR SHARE`)
		if err != nil {
			return err
		}
		if err := pins.check(regions); err != nil {
			return err
		}
		split, err := readSplit(ctx, tx, key)
		if errors.Is(err, ErrNotFound) {
			// A pin needs rows: the key begins with the base split as its target.
			if err = beginSplit(ctx, tx, key, regions); err == nil {
				split, err = readSplit(ctx, tx, key)
			}
		}
		if err != nil {
			return err
		}
		var last int64
		if err := tx.QueryRow(ctx, `SELECT coalesce(max(id), 0) FROM history WHERE kind = 'pin' AND tenant_id = $1 AND route_id = $2`,
			key.Tenant, key.Route).Scan(&last); err != nil {
			return err
		}
		if d.Before = pinsOf(split); d.Before != nil {
			d.Before.Revision = pinRevision(last)
		}
		if err := checkOf(e.Condition, d.Before, func(p *Pins) limit.Revision { return p.Revision }); err != nil {
			return err
		}
		if _, err = tx.Exec(ctx, `UPDATE split SET pinned_share = NULL, pin_expires_at = NULL, updated_at = now(), updated_by = $3, reason = $4
			WHERE tenant_id = $1 AND route_id = $2`, key.Tenant, key.Route, e.Actor, e.Reason); err != nil {
			return err
		}
		for region, share := range pins.Shares {
			var expires *time.Time
			if !pins.Expires.IsZero() {
				expires = &pins.Expires
			}
			_, err = tx.Exec(ctx, `INSERT INTO split (tenant_id, route_id, region, target_share, pinned_share, pin_expires_at, updated_by, reason)
				VALUES ($1, $2, $3, 0, $4, $5, $6, $7)
				ON CONFLICT (tenant_id, route_id, region) DO UPDATE SET pinned_share = excluded.pinned_share, pin_expires_at = excluded.pin_expires_at`,
				key.Tenant, key.Route, region, share, expires, e.Actor, e.Reason)
			if err != nil {
				return err
			}
		}
		pins.Revision = limit.Revision{}
		if len(pins.Shares) > 0 {
			d.After = &pins
		}
		if err = tx.QueryRow(ctx, `INSERT INTO history (kind, operation, tenant_id, route_id, actor, reason, before, after)
			VALUES ('pin', $1, $2, $3, $4, $5, $6, $7) RETURNING id`,
			operation, key.Tenant, key.Route, e.Actor, e.Reason, mustJSON(d.Before), mustJSON(d.After)).Scan(&last); err != nil {
			return err
		}
		pins.Revision = pinRevision(last)
		_, err = tx.Exec(ctx, `SELECT pg_notify('partidor_run', $1)`, key.String())
		return err
	})
	return d, err
}

// check refuses unknown regions, absurd shares, pins of more than the whole, or of all regions and less than it.
func (p *Pins) check(regions []Region) error {
	known := make(map[string]bool, len(regions))
	for _, r := range regions {
		known[r.Name] = true
	}
	for _, name := range p.Shares.Regions() {
		switch share := p.Shares[name]; {
		case !known[name]:
			return &FieldError{Field: "shares." + name, Reason: "no such region"}
		case share < 0 || share > limit.Whole:
			return &FieldError{Field: "shares." + name, Reason: "must be from 0 to 1000000 parts per million"}
		}
	}
	sum := p.Shares.Sum()
	if sum > limit.Whole || len(p.Shares) == len(regions) && len(regions) > 0 && sum != limit.Whole {
		return &FieldError{Field: "shares", Reason: "shares of all regions must add up to exactly 1000000 parts per million"}
	}
	return nil
}

func beginSplit(ctx context.Context, tx pgx.Tx, key limit.Key, regions []Region) error {
	for _, r := range regions {
		_, err := tx.Exec(ctx, `INSERT INTO split (tenant_id, route_id, region, target_share) VALUES ($1, $2, $3, $4)`,
			key.Tenant, key.Route, r.Name, r.Base)
		if err != nil {
			return err
		}
	}
	return nil
}

// pinsOf a split, nil where it has none.
func pinsOf(s Split) *Pins {
	p := &Pins{Shares: limit.Split{}}
	for _, r := range s.Regions {
		if r.Pin != nil {
			p.Shares[r.Region], p.Expires = *r.Pin, r.PinExpires
		}
	}
	if len(p.Shares) == 0 {
		return nil
	}
	return p
}

// mustJSON is null for nil; the types we give it always marshal.
func mustJSON[T any](v *T) []byte {
	if v == nil {
		return nil
	}
	out, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return out
}
