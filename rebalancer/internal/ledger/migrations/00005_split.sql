-- Splits: each region's share of a key, in parts per million. A key without rows has the base split and has never moved.
--
-- target_share is what the rebalancer (or a person) wants; observed_share is what the region's instances last reported as
-- in force. Gateways read neither of them: shares move by transfers, on advice. They read base_share, which is noted for
-- every region when the first share of the key is seen to have moved, and never edited after that (PROTOCOL R15). Rows with
-- base_share tell a gateway that this key's rights are in Redis, and a region without such a row, added later, has base 0.
-- Only that note is revisioned.
--
-- +goose Up
CREATE TABLE split (
    tenant_id       VARCHAR(64) NOT NULL,
    route_id        VARCHAR(64) NOT NULL,
    region          VARCHAR(64) NOT NULL,
    target_share    INT         NOT NULL CONSTRAINT split_target_share CHECK (target_share BETWEEN 0 AND 1000000),
    observed_share  INT         CONSTRAINT split_observed_share CHECK (observed_share BETWEEN 0 AND 1000000),
    observed_at     TIMESTAMPTZ,
    base_share      INT         CONSTRAINT split_base_share CHECK (base_share BETWEEN 0 AND 1000000),
    moved_at        TIMESTAMPTZ,
    pinned_share    INT         CONSTRAINT split_pinned_share CHECK (pinned_share BETWEEN 0 AND 1000000),
    pin_expires_at  TIMESTAMPTZ,
    term            BIGINT      NOT NULL DEFAULT 0, -- of the leader that decided; 0 for a person
    cycle           BIGINT      NOT NULL DEFAULT 0,
    updated_at      TIMESTAMPTZ NOT NULL DEFAULT now(),
    updated_by      TEXT        NOT NULL DEFAULT '',
    reason          TEXT        NOT NULL DEFAULT '',
    revision_epoch  BIGINT      NOT NULL DEFAULT 0,
    revision_number BIGINT      NOT NULL DEFAULT 0,
    PRIMARY KEY (tenant_id, route_id, region),
    CONSTRAINT split_key CHECK (octet_length(tenant_id) BETWEEN 1 AND 64 AND tenant_id <> '*'
                            AND octet_length(route_id) BETWEEN 1 AND 64 AND route_id <> '*'),
    CONSTRAINT split_moved CHECK ((base_share IS NULL) = (moved_at IS NULL))
);
CREATE INDEX split_revision ON split (revision_epoch, revision_number) WHERE moved_at IS NOT NULL;
CREATE INDEX split_updated ON split (updated_at);
CREATE INDEX split_pin ON split (tenant_id, route_id) WHERE pinned_share IS NOT NULL;

-- +goose StatementBegin
CREATE FUNCTION split_guard() RETURNS TRIGGER LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
    stamp RECORD;
BEGIN
    IF TG_OP = 'DELETE' THEN
        IF OLD.moved_at IS NOT NULL THEN
            RAISE EXCEPTION 'split of %/% in %: the key has moved, its base share must stay known', OLD.tenant_id, OLD.route_id, OLD.region
                USING ERRCODE = 'check_violation', CONSTRAINT = 'split_base_kept';
        END IF;
        RETURN OLD;
    END IF;
    IF TG_OP = 'UPDATE' AND OLD.base_share IS NOT NULL AND NEW.base_share IS DISTINCT FROM OLD.base_share THEN
        RAISE EXCEPTION 'split of %/% in %: the base share of a moved key is never edited', OLD.tenant_id, OLD.route_id, OLD.region
            USING ERRCODE = 'check_violation', CONSTRAINT = 'split_base_kept';
    END IF;
    IF NEW.base_share IS NOT NULL AND (TG_OP = 'INSERT' OR OLD.base_share IS NULL) THEN
        SELECT * INTO stamp FROM ledger_next_revision();
        NEW.revision_epoch := stamp.epoch;
        NEW.revision_number := stamp.number;
    END IF;
    RETURN NEW;
END $$;
-- +goose StatementEnd

-- +goose StatementBegin
-- At commit: the targets of a key add up exactly.
CREATE FUNCTION split_check_sum() RETURNS TRIGGER LANGUAGE plpgsql AS $$
DECLARE
    key   RECORD;
    total BIGINT;
BEGIN
    key := coalesce(NEW, OLD);
    SELECT sum(target_share) INTO total FROM split WHERE tenant_id = key.tenant_id AND route_id = key.route_id;
    IF total <> 1000000 THEN
        RAISE EXCEPTION 'target_share of %/% adds up to %, must be exactly 1000000', key.tenant_id, key.route_id, total
            USING ERRCODE = 'check_violation', CONSTRAINT = 'split_target_sum';
    END IF;
    RETURN NULL;
END $$;
-- +goose StatementEnd

CREATE TRIGGER split_guard BEFORE INSERT OR UPDATE OF base_share OR DELETE ON split FOR EACH ROW EXECUTE FUNCTION split_guard();
CREATE CONSTRAINT TRIGGER split_sum AFTER INSERT OR UPDATE OF target_share OR DELETE ON split
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION split_check_sum();
CREATE TRIGGER split_truncate BEFORE TRUNCATE ON split FOR EACH STATEMENT EXECUTE FUNCTION ledger_refuse_truncate();

-- +goose Down
DROP TABLE split;
DROP FUNCTION split_check_sum();
DROP FUNCTION split_guard();
