-- Revisions, tombstones and history: what every table that gateways read has in common.
--
-- A revision is (epoch, number). Every transaction that changes a revisioned table takes one number, by updating the one
-- row of ledger_revision: it holds that row until it commits, so numbers become visible in their own order and a reader
-- that polls `(revision_epoch, revision_number) > (last)` misses nothing. All rows of one transaction share its number;
-- a reader that selects from several tables does so in one REPEATABLE READ transaction.
--
-- The epoch rises when PostgreSQL's timeline or its system identifier is no longer the one noted in ledger_revision:
-- after a fail-over, a point-in-time recovery or a restore into another cluster, the database may have forgotten numbers
-- that readers have already seen. Writers notice by themselves (ledger_next_revision), and the leading rebalancer calls
-- ledger_observe_timeline() every few seconds so that it is noticed without a write. A reader that sees the epoch rise
-- loads everything again and counts every row as at least (epoch, 0): rows that were not rewritten keep their old numbers.
--
-- Deleting a row leaves a tombstone with the revision of the deletion, in the same transaction; creating the row again
-- removes it. Tombstones are never purged: they keep the revision of a key's look-up from going back.
--
-- History says who, when, why, before and after, also for statements typed into psql. Writers that act for somebody say
-- so with `SELECT set_config('partidor.actor', …, true), set_config('partidor.reason', …, true)` in the transaction;
-- without it the login role counts as the actor.
--
-- +goose Up
CREATE TABLE ledger_revision (
    only_row          BOOLEAN PRIMARY KEY DEFAULT true CHECK (only_row),
    epoch             BIGINT  NOT NULL,
    number            BIGINT  NOT NULL,
    timeline          BIGINT  NOT NULL,
    system_identifier BIGINT  NOT NULL
) WITH (fillfactor = 10); -- one hot row: room for updates within the page

CREATE TABLE tombstone (
    kind            VARCHAR(16) NOT NULL, -- rule, tenant, api_key, region, parameter
    tenant_id       VARCHAR(64) NOT NULL DEFAULT '',
    route_id        VARCHAR(64) NOT NULL DEFAULT '',
    name            VARCHAR(64) NOT NULL DEFAULT '', -- of a region or parameter; the hash in hex of an API key
    deleted_at      TIMESTAMPTZ NOT NULL DEFAULT now(),
    revision_epoch  BIGINT      NOT NULL,
    revision_number BIGINT      NOT NULL,
    PRIMARY KEY (kind, tenant_id, route_id, name)
);
CREATE INDEX tombstone_revision ON tombstone (revision_epoch, revision_number);

-- One audit log, in one partition per concern so that each can be read, indexed and aged by itself.
CREATE TABLE history (
    id              BIGSERIAL   NOT NULL,
    kind            VARCHAR(16) NOT NULL,
    at              TIMESTAMPTZ NOT NULL DEFAULT now(),
    operation       VARCHAR(16) NOT NULL, -- insert, update, delete; of a split: plan, set, pin, unpin, rollback, observe
    tenant_id       VARCHAR(64) NOT NULL DEFAULT '',
    route_id        VARCHAR(64) NOT NULL DEFAULT '',
    name            VARCHAR(64) NOT NULL DEFAULT '',
    actor           TEXT        NOT NULL,
    reason          TEXT        NOT NULL DEFAULT '',
    before          JSONB,
    after           JSONB,
    revision_epoch  BIGINT      NOT NULL DEFAULT 0,
    revision_number BIGINT      NOT NULL DEFAULT 0,
    term            BIGINT,                -- of the leader, where a leader decided
    cycle           BIGINT,
    PRIMARY KEY (kind, id)
) PARTITION BY LIST (kind);
CREATE TABLE rule_history      PARTITION OF history FOR VALUES IN ('rule');
CREATE TABLE split_history     PARTITION OF history FOR VALUES IN ('split', 'pin');
CREATE TABLE parameter_history PARTITION OF history FOR VALUES IN ('parameter');
CREATE TABLE directory_history PARTITION OF history FOR VALUES IN ('tenant', 'api_key', 'region');
CREATE INDEX history_subject ON history (tenant_id, route_id, name, id DESC);
CREATE INDEX history_at ON history (at);

-- +goose StatementBegin
-- The timeline that is being written now; pg_control still shows the old one for a while after a promotion.
CREATE FUNCTION ledger_timeline() RETURNS BIGINT LANGUAGE sql VOLATILE AS $$
    SELECT ('x' || substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8))::bit(32)::bigint
$$;
-- +goose StatementEnd

INSERT INTO ledger_revision (epoch, number, timeline, system_identifier)
SELECT 1, 0, ledger_timeline(), system_identifier FROM pg_control_system();

-- +goose StatementBegin
-- Raises the epoch if this is another timeline or cluster than the one noted; answers the epoch in force.
CREATE FUNCTION ledger_observe_timeline() RETURNS BIGINT LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
    current_timeline BIGINT := ledger_timeline();
    current_system   BIGINT := (SELECT system_identifier FROM pg_control_system());
    in_force         BIGINT;
BEGIN
    UPDATE ledger_revision
       SET epoch = epoch + 1, timeline = current_timeline, system_identifier = current_system
     WHERE timeline <> current_timeline OR system_identifier <> current_system
    RETURNING epoch INTO in_force;
    IF FOUND THEN
        PERFORM pg_notify('partidor_changed', in_force || '.0');
    ELSE
        SELECT epoch INTO in_force FROM ledger_revision;
    END IF;
    RETURN in_force;
END $$;
-- +goose StatementEnd

-- +goose StatementBegin
-- The revision of this transaction. The first call takes the next number and keeps the lock on ledger_revision until the
-- end; later calls answer the same. The note is bound to the transaction's id, so a leftover of another is not believed.
CREATE FUNCTION ledger_next_revision(OUT epoch BIGINT, OUT number BIGINT) LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
    xact TEXT   := pg_current_xact_id()::text;
    note TEXT[] := string_to_array(current_setting('partidor.revision', true), '.');
BEGIN
    IF note[3] = xact THEN
        epoch := note[1];
        number := note[2];
        RETURN;
    END IF;
    PERFORM ledger_observe_timeline();
    UPDATE ledger_revision r SET number = r.number + 1 RETURNING r.epoch, r.number INTO epoch, number;
    PERFORM set_config('partidor.revision', epoch || '.' || number || '.' || xact, true);
    PERFORM pg_notify('partidor_changed', epoch || '.' || number);
END $$;
-- +goose StatementEnd

-- +goose StatementBegin
-- BEFORE INSERT OR UPDATE: stamps revision, time, actor and reason. A row that says nothing new keeps its stamp.
CREATE FUNCTION ledger_stamp() RETURNS TRIGGER LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
    actor  TEXT := nullif(current_setting('partidor.actor', true), '');
    reason TEXT := nullif(current_setting('partidor.reason', true), '');
    stamp  RECORD;
BEGIN
    IF TG_OP = 'UPDATE' THEN
        IF to_jsonb(NEW) - '{updated_at,updated_by,reason,revision_epoch,revision_number}'::text[]
         = to_jsonb(OLD) - '{updated_at,updated_by,reason,revision_epoch,revision_number}'::text[] THEN
            RETURN OLD;
        END IF;
        -- What the row says of its last writer must not be taken for this one's.
        NEW.updated_by := coalesce(actor, nullif(NEW.updated_by, OLD.updated_by), session_user);
        NEW.reason := coalesce(reason, nullif(NEW.reason, OLD.reason), '');
    ELSE
        NEW.updated_by := coalesce(actor, nullif(NEW.updated_by, ''), session_user);
        NEW.reason := coalesce(reason, NEW.reason, '');
    END IF;
    SELECT * INTO stamp FROM ledger_next_revision();
    NEW.updated_at := now();
    NEW.revision_epoch := stamp.epoch;
    NEW.revision_number := stamp.number;
    RETURN NEW;
END $$;
-- +goose StatementEnd

-- +goose StatementBegin
-- AFTER INSERT OR UPDATE OR DELETE: writes history and keeps the tombstones.
-- Arguments: kind; the columns that hold tenant_id, route_id and name, '' where the table has none.
CREATE FUNCTION ledger_record() RETURNS TRIGGER LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
    old_row  JSONB;
    new_row  JSONB;
    old_name TEXT;
    new_name TEXT;
    stamp    RECORD;
    actor    TEXT := coalesce(nullif(current_setting('partidor.actor', true), ''), session_user);
    reason   TEXT := coalesce(current_setting('partidor.reason', true), '');
    renamed  BOOLEAN;
BEGIN
    IF TG_OP <> 'INSERT' THEN
        old_row := to_jsonb(OLD);
        old_name := coalesce(regexp_replace(old_row ->> TG_ARGV[3], '^\\x', ''), '');
    END IF;
    IF TG_OP <> 'DELETE' THEN
        new_row := to_jsonb(NEW);
        new_name := coalesce(regexp_replace(new_row ->> TG_ARGV[3], '^\\x', ''), '');
        actor := new_row ->> 'updated_by';
        reason := new_row ->> 'reason';
    END IF;
    IF TG_OP = 'UPDATE' AND new_row = old_row THEN
        RETURN NULL;
    END IF;
    SELECT * INTO stamp FROM ledger_next_revision();
    INSERT INTO history (kind, operation, tenant_id, route_id, name, actor, reason, before, after, revision_epoch, revision_number)
    VALUES (TG_ARGV[0], lower(TG_OP),
            coalesce(coalesce(new_row, old_row) ->> TG_ARGV[1], coalesce(new_row, old_row) ->> 'tenant_id', ''), coalesce(coalesce(new_row, old_row) ->> TG_ARGV[2], ''),
            coalesce(new_name, old_name), actor, reason, old_row, new_row, stamp.epoch, stamp.number);
    renamed := TG_OP = 'UPDATE' AND (old_row ->> TG_ARGV[1], old_row ->> TG_ARGV[2], old_name)
                   IS DISTINCT FROM (new_row ->> TG_ARGV[1], new_row ->> TG_ARGV[2], new_name);
    IF TG_OP = 'DELETE' OR renamed THEN
        INSERT INTO tombstone AS t (kind, tenant_id, route_id, name, revision_epoch, revision_number)
        VALUES (TG_ARGV[0], coalesce(old_row ->> TG_ARGV[1], ''), coalesce(old_row ->> TG_ARGV[2], ''), old_name, stamp.epoch, stamp.number)
        ON CONFLICT (kind, tenant_id, route_id, name) DO UPDATE
           SET deleted_at = now(), revision_epoch = excluded.revision_epoch, revision_number = excluded.revision_number;
    END IF;
    IF TG_OP = 'INSERT' OR renamed THEN
        DELETE FROM tombstone t
         WHERE t.kind = TG_ARGV[0] AND t.tenant_id = coalesce(new_row ->> TG_ARGV[1], '')
           AND t.route_id = coalesce(new_row ->> TG_ARGV[2], '') AND t.name = new_name;
    END IF;
    RETURN NULL;
END $$;
-- +goose StatementEnd

-- +goose StatementBegin
-- BEFORE TRUNCATE: would leave neither tombstones nor history.
CREATE FUNCTION ledger_refuse_truncate() RETURNS TRIGGER LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'TRUNCATE of % would hide deletions from gateways: use DELETE', TG_TABLE_NAME;
END $$;
-- +goose StatementEnd

-- +goose Down
DROP FUNCTION ledger_refuse_truncate();
DROP FUNCTION ledger_record();
DROP FUNCTION ledger_stamp();
DROP FUNCTION ledger_next_revision();
DROP FUNCTION ledger_observe_timeline();
DROP TABLE history;
DROP TABLE tombstone;
DROP TABLE ledger_revision;
DROP FUNCTION ledger_timeline();
