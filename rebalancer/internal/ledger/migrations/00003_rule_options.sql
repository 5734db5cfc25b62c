-- Everything a rule can say beyond capacity and refill. The words and bounds are those of limit.Rule.Validate: what a
-- CHECK lets through can be enforced exactly.
--
-- capacity, refill_per_second / refill_period_seconds: tokens, and tokens per so many seconds (5 and 60 is 5 per minute).
-- tenant_id '@gold' addresses the tenants of the plan gold; route_id '@tenant' limits all of a tenant's routes together.
-- A rule with expires_at in the past no longer applies: the next match does.
--
-- +goose Up
ALTER TABLE rate_limit_rule
    ALTER COLUMN capacity TYPE BIGINT,
    ALTER COLUMN refill_per_second DROP NOT NULL,
    ADD COLUMN refill_period_seconds INT NOT NULL DEFAULT 1,
    ADD COLUMN algorithm       VARCHAR(24) NOT NULL DEFAULT 'token_bucket',
    ADD COLUMN window_seconds  INT,
    ADD COLUMN calendar_window VARCHAR(8), -- "window" alone is a reserved word of SQL
    ADD COLUMN mode            VARCHAR(16) NOT NULL DEFAULT 'enforce',
    ADD COLUMN on_error        VARCHAR(16) NOT NULL DEFAULT 'local',
    ADD COLUMN prefetch        BOOLEAN     NOT NULL DEFAULT false,
    ADD COLUMN shards          INT         NOT NULL DEFAULT 1,
    ADD COLUMN hide_headers    BOOLEAN     NOT NULL DEFAULT false,
    ADD COLUMN expires_at      TIMESTAMPTZ,
    ADD COLUMN updated_by      TEXT        NOT NULL DEFAULT '',
    ADD COLUMN reason          TEXT        NOT NULL DEFAULT '',
    ADD COLUMN revision_epoch  BIGINT      NOT NULL DEFAULT 0,
    ADD COLUMN revision_number BIGINT      NOT NULL DEFAULT 0,
    ADD CONSTRAINT rule_tenant_id CHECK (tenant_id = '*' OR (octet_length(tenant_id) BETWEEN 1 AND 64 AND tenant_id <> '@')),
    ADD CONSTRAINT rule_route_id CHECK (route_id IN ('*', '@tenant') OR (octet_length(route_id) BETWEEN 1 AND 64 AND left(route_id, 1) <> '@')),
    ADD CONSTRAINT rule_capacity_max CHECK (capacity <= 9007199254740991),
    ADD CONSTRAINT rule_refill_period CHECK (refill_period_seconds BETWEEN 1 AND 315576000),
    ADD CONSTRAINT rule_refill_max CHECK (refill_per_second <= 1000000000::bigint * greatest(refill_period_seconds, 1)),
    ADD CONSTRAINT rule_refill_required CHECK (refill_per_second IS NOT NULL OR algorithm <> 'token_bucket'),
    ADD CONSTRAINT rule_algorithm CHECK (algorithm IN ('token_bucket', 'fixed_window', 'sliding_window_log', 'sliding_window_counter')),
    ADD CONSTRAINT rule_window CHECK (
        CASE WHEN algorithm = 'token_bucket' THEN window_seconds IS NULL AND calendar_window IS NULL
             WHEN algorithm = 'fixed_window' THEN (window_seconds IS NULL) <> (calendar_window IS NULL)
             ELSE window_seconds IS NOT NULL AND calendar_window IS NULL END),
    ADD CONSTRAINT rule_window_seconds CHECK (window_seconds BETWEEN 1 AND 315576000),
    ADD CONSTRAINT rule_calendar_window CHECK (calendar_window IN ('hour', 'day', 'month')),
    ADD CONSTRAINT rule_log_capacity CHECK (algorithm <> 'sliding_window_log' OR capacity <= 10000),
    ADD CONSTRAINT rule_mode CHECK (mode IN ('enforce', 'shadow', 'block', 'unlimited')),
    ADD CONSTRAINT rule_on_error CHECK (on_error IN ('local', 'allow', 'deny')),
    ADD CONSTRAINT rule_prefetch CHECK (NOT prefetch OR algorithm = 'token_bucket'),
    ADD CONSTRAINT rule_shards CHECK (shards BETWEEN 1 AND 64 AND (shards = 1 OR algorithm = 'token_bucket')),
    -- Shards live in several slots, a tenant's limit in one: they cannot be charged together, all or nothing.
    ADD CONSTRAINT rule_shards_of_tenant CHECK (shards = 1 OR route_id <> '@tenant');

CREATE INDEX rule_revision ON rate_limit_rule (revision_epoch, revision_number);

CREATE TRIGGER rule_stamp BEFORE INSERT OR UPDATE ON rate_limit_rule
    FOR EACH ROW EXECUTE FUNCTION ledger_stamp();
CREATE TRIGGER rule_record AFTER INSERT OR UPDATE OR DELETE ON rate_limit_rule
    FOR EACH ROW EXECUTE FUNCTION ledger_record('rule', 'tenant_id', 'route_id', '');
CREATE TRIGGER rule_truncate BEFORE TRUNCATE ON rate_limit_rule
    FOR EACH STATEMENT EXECUTE FUNCTION ledger_refuse_truncate();

-- +goose Down
DROP TRIGGER rule_truncate ON rate_limit_rule;
DROP TRIGGER rule_record ON rate_limit_rule;
DROP TRIGGER rule_stamp ON rate_limit_rule;
DROP INDEX rule_revision;
-- Rules that the older form cannot say are dropped: a wrong limit is worse than the next match.
DELETE FROM rate_limit_rule
 WHERE algorithm <> 'token_bucket' OR mode <> 'enforce' OR refill_period_seconds <> 1 OR capacity > 2147483647 OR expires_at IS NOT NULL;
ALTER TABLE rate_limit_rule
    DROP CONSTRAINT rule_tenant_id, DROP CONSTRAINT rule_route_id, DROP CONSTRAINT rule_capacity_max,
    DROP CONSTRAINT rule_refill_period, DROP CONSTRAINT rule_refill_max, DROP CONSTRAINT rule_refill_required,
    DROP CONSTRAINT rule_algorithm, DROP CONSTRAINT rule_window, DROP CONSTRAINT rule_window_seconds,
    DROP CONSTRAINT rule_calendar_window, DROP CONSTRAINT rule_log_capacity, DROP CONSTRAINT rule_mode,
    DROP CONSTRAINT rule_on_error, DROP CONSTRAINT rule_prefetch, DROP CONSTRAINT rule_shards, DROP CONSTRAINT rule_shards_of_tenant,
    DROP COLUMN refill_period_seconds, DROP COLUMN algorithm, DROP COLUMN window_seconds, DROP COLUMN calendar_window,
    DROP COLUMN mode, DROP COLUMN on_error, DROP COLUMN prefetch, DROP COLUMN shards, DROP COLUMN hide_headers,
    DROP COLUMN expires_at, DROP COLUMN updated_by, DROP COLUMN reason, DROP COLUMN revision_epoch, DROP COLUMN revision_number,
    ALTER COLUMN refill_per_second SET NOT NULL,
    ALTER COLUMN capacity TYPE INT;
