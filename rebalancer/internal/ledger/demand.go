package ledger

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"partidor.dev/partidor/shared/limit"
)

// DemandPoint is what one region offered of one key, in tokens per second. The key ("*", "*") is the sum of all that are
// not recorded one by one.
type DemandPoint struct {
	At      time.Time   `json:"at"`
	Tenant  string      `json:"tenant"`
	Route   string      `json:"route"`
	Region  string      `json:"region"`
	Offered float32     `json:"offered"`
	Refused float32     `json:"refused"`
	Share   limit.Share `json:"share"`
}

// Steps of recorded demand, and how long minutes are kept.
const (
	DemandMinute = time.Minute
	DemandHour   = time.Hour
	keepMinutes  = 24 * time.Hour
)

// RecordDemand keeps one minute.
func (p *Postgres) RecordDemand(ctx context.Context, term int64, points []DemandPoint) error {
	var (
		at                       []time.Time
		tenants, routes, regions []string
		offered, refused         []float32
		shares                   []int32
	)
	for i := range points {
		d := &points[i]
		at = append(at, d.At)
		tenants, routes, regions = append(tenants, d.Tenant), append(routes, d.Route), append(regions, d.Region)
		offered, refused, shares = append(offered, d.Offered), append(refused, d.Refused), append(shares, int32(d.Share))
	}
	return p.change(ctx, "record demand", Author{}, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `INSERT INTO demand (step_seconds, at, tenant_id, route_id, region, offered, refused, share)
			SELECT 60, * FROM unnest($1::timestamptz[], $2::text[], $3::text[], $4::text[], $5::real[], $6::real[], $7::int[])
			ON CONFLICT DO NOTHING`, at, tenants, routes, regions, offered, refused, shares)
		if err != nil {
			return err
		}
		return fence(ctx, tx, term)
	})
}

// RollUpDemand makes hours of minutes that have gone by, and drops minutes older than a day and hours older than keep.
func (p *Postgres) RollUpDemand(ctx context.Context, term int64, keep time.Duration) error {
	return p.change(ctx, "roll up demand", Author{}, func(tx pgx.Tx) error {
		// A minute in which a key was not recorded by itself counts as nothing.
		_, err := tx.Exec(ctx, `INSERT INTO demand (step_seconds, at, tenant_id, route_id, region, offered, refused, share)
			SELECT 3600, date_trunc('hour', at), tenant_id, route_id, region, sum(offered) / 60, sum(refused) / 60, round(avg(share))
			  FROM demand WHERE step_seconds = 60 AND at < date_trunc('hour', now())
			   AND at >= coalesce((SELECT max(at) + interval '1 hour' FROM demand WHERE step_seconds = 3600), '-infinity')
			 GROUP BY date_trunc('hour', at), tenant_id, route_id, region ON CONFLICT DO NOTHING`)
		if err != nil {
			return err
		}
		_, err = tx.Exec(ctx, `DELETE FROM demand WHERE step_seconds = 60 AND at < now() - $1::interval OR step_seconds = 3600 AND at < now() - $2::interval`,
			keepMinutes, keep)
		if err != nil {
			return err
		}
		return fence(ctx, tx, term)
	})
}

// Demand of one key since a moment, oldest first; of all recorded keys where key is zero. Step is DemandMinute or DemandHour.
func (p *Postgres) Demand(ctx context.Context, key limit.Key, since time.Time, step time.Duration) (points []DemandPoint, err error) {
	err = p.snapshot(ctx, "read recorded demand", func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, `SELECT at, tenant_id, route_id, region, offered, refused, share FROM demand
			WHERE step_seconds = $1 AND at >= $2 AND ($3 = '' OR tenant_id = $3 AND route_id = $4) ORDER BY at, tenant_id, route_id, region`,
			int(step/time.Second), since, key.Tenant, key.Route)
		if err != nil {
			return err
		}
		points, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (d DemandPoint, err error) {
			err = row.Scan(&d.At, &d.Tenant, &d.Route, &d.Region, &d.Offered, &d.Refused, &d.Share)
			return d, err
		})
		return err
	})
	return points, err
}
