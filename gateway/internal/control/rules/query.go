package rules

// What a gateway reads of the ledger. Columns are named, so that the ledger may grow; $1, $2 is the revision after which
// rows are news, and a row's revision counts as at least ($3, 0), the epoch in force: after a fail-over, rows that were not
// rewritten keep the numbers of the epoch before.
const (
	queryRevision = `SELECT epoch, number FROM ledger_revision`

	// queryEstimate is PostgreSQL's own guess at the number of rules, to make room for them at once; −1 before it has one.
	queryEstimate = `SELECT reltuples::bigint FROM pg_class WHERE oid = 'rate_limit_rule'::regclass`

	queryRules = `
SELECT tenant_id, route_id, capacity, refill_per_second, refill_period_seconds, algorithm, window_seconds,
       calendar_window, mode, on_error, prefetch, shards, max_cost, hide_headers, expires_at, revision_epoch, revision_number
  FROM rate_limit_rule
 WHERE (revision_epoch, revision_number) > ($1, $2)`

	queryTenants = `
SELECT id, plan, revision_epoch, revision_number
  FROM tenant
 WHERE (revision_epoch, revision_number) > ($1, $2)`

	queryKeys = `
SELECT hash, tenant_id, enabled, expires_at, revision_epoch, revision_number
  FROM api_key
 WHERE (revision_epoch, revision_number) > ($1, $2)`

	queryTombstones = `
SELECT kind, tenant_id, route_id, name, revision_epoch, revision_number
  FROM tombstone
 WHERE kind IN ('rule', 'tenant', 'api_key') AND (revision_epoch, revision_number) > ($1, $2)`

	// queryMoved: a region without a row of its own was added after the key had moved and has base 0.
	queryMoved = `
SELECT DISTINCT s.tenant_id, s.route_id, coalesce(own.base_share, 0)
  FROM split s
  LEFT JOIN split own
    ON own.tenant_id = s.tenant_id AND own.route_id = s.route_id AND own.region = $3 AND own.moved_at IS NOT NULL
 WHERE s.moved_at IS NOT NULL AND (s.revision_epoch, s.revision_number) > ($1, $2)`

	// Regions and parameters are few and read whole every time.
	// An older ledger has no earlier_shares; then that column is NULL.
	queryRegions = `
SELECT name, published_share, floor_share, failure_domain, revision_epoch, revision_number,
       (SELECT coalesce(jsonb_agg(jsonb_build_object('share', e -> 'share', 'age', extract(epoch FROM clock_timestamp()) - (e ->> 'until')::numeric)
                                  ORDER BY place), '[]')
          FROM jsonb_array_elements(to_jsonb(region) -> 'earlier_shares') WITH ORDINALITY AS entries (e, place)
        HAVING to_jsonb(region) ? 'earlier_shares')
  FROM region`

	queryRegionTombstone = `
SELECT revision_epoch, revision_number
  FROM tombstone
 WHERE kind = 'region'
 ORDER BY revision_epoch DESC, revision_number DESC
 LIMIT 1`

	queryParameters = `
SELECT name, value
  FROM parameter
 WHERE name IN ('control_domain', 'fast_loop', 'floor', 'shadow')`
)
