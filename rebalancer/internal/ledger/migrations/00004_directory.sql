-- Who calls, with which credentials, and where we run. Gateways read all three tables by revision, as they read rules.
--
-- api_key.hash is the SHA-256 of the key; the key itself is never stored.
--
-- region.base_share is what people configure; region.published_share is what gateways use for keys that have never moved.
-- They differ while a change is under way: the leading rebalancer publishes the smaller of old and new for every region,
-- waits until every region has acknowledged that, then publishes the new split (PROTOCOL R15). The very first regions are
-- published at once.
--
-- +goose Up
CREATE TABLE tenant (
    id              VARCHAR(64) PRIMARY KEY,
    plan            VARCHAR(64) NOT NULL DEFAULT '', -- '' is no plan; the rules of plan gold have tenant_id '@gold'
    updated_at      TIMESTAMPTZ NOT NULL DEFAULT now(),
    updated_by      TEXT        NOT NULL DEFAULT '',
    reason          TEXT        NOT NULL DEFAULT '',
    revision_epoch  BIGINT      NOT NULL DEFAULT 0,
    revision_number BIGINT      NOT NULL DEFAULT 0,
    CONSTRAINT tenant_id_name CHECK (octet_length(id) BETWEEN 1 AND 64 AND id <> '*' AND left(id, 1) <> '@'),
    CONSTRAINT tenant_plan_name CHECK (octet_length(plan) <= 63 AND plan <> '*' AND left(plan, 1) <> '@')
);
CREATE INDEX tenant_revision ON tenant (revision_epoch, revision_number);

CREATE TABLE api_key (
    hash            BYTEA       PRIMARY KEY CONSTRAINT api_key_hash_sha256 CHECK (octet_length(hash) = 32),
    tenant_id       VARCHAR(64) NOT NULL CONSTRAINT api_key_tenant REFERENCES tenant (id) ON DELETE CASCADE,
    label           TEXT        NOT NULL DEFAULT '', -- for people: who uses it
    enabled         BOOLEAN     NOT NULL DEFAULT true,
    expires_at      TIMESTAMPTZ,
    created_at      TIMESTAMPTZ NOT NULL DEFAULT now(),
    updated_at      TIMESTAMPTZ NOT NULL DEFAULT now(),
    updated_by      TEXT        NOT NULL DEFAULT '',
    reason          TEXT        NOT NULL DEFAULT '',
    revision_epoch  BIGINT      NOT NULL DEFAULT 0,
    revision_number BIGINT      NOT NULL DEFAULT 0
);
CREATE INDEX api_key_revision ON api_key (revision_epoch, revision_number);
CREATE INDEX api_key_of_tenant ON api_key (tenant_id);

CREATE TABLE region (
    name            VARCHAR(64) PRIMARY KEY CONSTRAINT region_name CHECK (name ~ '^[A-Za-z0-9_-]+$'),
    base_share      INT         NOT NULL CONSTRAINT region_base_share CHECK (base_share BETWEEN 0 AND 1000000),
    published_share INT         NOT NULL DEFAULT 0 CONSTRAINT region_published_share CHECK (published_share BETWEEN 0 AND 1000000),
    floor_share     INT         CONSTRAINT region_floor_share CHECK (floor_share BETWEEN 0 AND 1000000), -- NULL: the parameter floor times the base share
    failure_domain  VARCHAR(64) NOT NULL DEFAULT '',
    state           VARCHAR(16) NOT NULL DEFAULT 'active' CONSTRAINT region_state CHECK (state IN ('active', 'draining', 'dead')),
    updated_at      TIMESTAMPTZ NOT NULL DEFAULT now(),
    updated_by      TEXT        NOT NULL DEFAULT '',
    reason          TEXT        NOT NULL DEFAULT '',
    revision_epoch  BIGINT      NOT NULL DEFAULT 0,
    revision_number BIGINT      NOT NULL DEFAULT 0
);
CREATE INDEX region_revision ON region (revision_epoch, revision_number);

-- +goose StatementBegin
CREATE FUNCTION region_publish_first() RETURNS TRIGGER LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.published_share = 0 AND (SELECT coalesce(sum(published_share), 0) FROM region) + NEW.base_share <= 1000000 THEN
        NEW.published_share := NEW.base_share;
    END IF;
    RETURN NEW;
END $$;
-- +goose StatementEnd

-- +goose StatementBegin
-- At commit: what people configure adds up exactly, what gateways use never exceeds the whole.
CREATE FUNCTION region_check_sum() RETURNS TRIGGER LANGUAGE plpgsql AS $$
DECLARE
    regions   BIGINT;
    base      BIGINT;
    published BIGINT;
BEGIN
    SELECT count(*), sum(base_share), sum(published_share) INTO regions, base, published FROM region;
    IF regions > 0 AND base <> 1000000 THEN
        RAISE EXCEPTION 'base_share of all regions adds up to %, must be exactly 1000000', base
            USING ERRCODE = 'check_violation', CONSTRAINT = 'region_base_sum';
    ELSIF published > 1000000 THEN
        RAISE EXCEPTION 'published_share of all regions adds up to %, must be at most 1000000', published
            USING ERRCODE = 'check_violation', CONSTRAINT = 'region_published_sum';
    END IF;
    RETURN NULL;
END $$;
-- +goose StatementEnd

CREATE TRIGGER region_a_publish_first BEFORE INSERT ON region FOR EACH ROW EXECUTE FUNCTION region_publish_first();
CREATE CONSTRAINT TRIGGER region_sum AFTER INSERT OR UPDATE OR DELETE ON region
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION region_check_sum();

CREATE TRIGGER tenant_stamp BEFORE INSERT OR UPDATE ON tenant FOR EACH ROW EXECUTE FUNCTION ledger_stamp();
CREATE TRIGGER api_key_stamp BEFORE INSERT OR UPDATE ON api_key FOR EACH ROW EXECUTE FUNCTION ledger_stamp();
CREATE TRIGGER region_stamp BEFORE INSERT OR UPDATE ON region FOR EACH ROW EXECUTE FUNCTION ledger_stamp();
CREATE TRIGGER tenant_record AFTER INSERT OR UPDATE OR DELETE ON tenant
    FOR EACH ROW EXECUTE FUNCTION ledger_record('tenant', 'id', '', '');
CREATE TRIGGER api_key_record AFTER INSERT OR UPDATE OR DELETE ON api_key
    FOR EACH ROW EXECUTE FUNCTION ledger_record('api_key', '', '', 'hash');
CREATE TRIGGER region_record AFTER INSERT OR UPDATE OR DELETE ON region
    FOR EACH ROW EXECUTE FUNCTION ledger_record('region', '', '', 'name');
CREATE TRIGGER tenant_truncate BEFORE TRUNCATE ON tenant FOR EACH STATEMENT EXECUTE FUNCTION ledger_refuse_truncate();
CREATE TRIGGER api_key_truncate BEFORE TRUNCATE ON api_key FOR EACH STATEMENT EXECUTE FUNCTION ledger_refuse_truncate();
CREATE TRIGGER region_truncate BEFORE TRUNCATE ON region FOR EACH STATEMENT EXECUTE FUNCTION ledger_refuse_truncate();

-- +goose Down
DROP TABLE region;
DROP TABLE api_key;
DROP TABLE tenant;
DROP FUNCTION region_check_sum();
DROP FUNCTION region_publish_first();
