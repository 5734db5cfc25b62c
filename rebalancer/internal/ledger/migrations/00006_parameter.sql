-- Parameters that change at run time (cycle, floor, deadband, step, headroom, half-lives, fast loop, pause, shadow …).
-- A parameter without a row has the default of the program; names and bounds are checked by the rebalancer, and a row it
-- does not understand is kept, reported and not used.
--
-- +goose Up
CREATE TABLE parameter (
    name            VARCHAR(64) PRIMARY KEY CONSTRAINT parameter_name CHECK (name ~ '^[a-z][a-z0-9_.]*$'),
    value           JSONB       NOT NULL,
    updated_at      TIMESTAMPTZ NOT NULL DEFAULT now(),
    updated_by      TEXT        NOT NULL DEFAULT '',
    reason          TEXT        NOT NULL DEFAULT '',
    revision_epoch  BIGINT      NOT NULL DEFAULT 0,
    revision_number BIGINT      NOT NULL DEFAULT 0
);
CREATE INDEX parameter_revision ON parameter (revision_epoch, revision_number);
CREATE TRIGGER parameter_stamp BEFORE INSERT OR UPDATE ON parameter FOR EACH ROW EXECUTE FUNCTION ledger_stamp();
CREATE TRIGGER parameter_record AFTER INSERT OR UPDATE OR DELETE ON parameter
    FOR EACH ROW EXECUTE FUNCTION ledger_record('parameter', '', '', 'name');
CREATE TRIGGER parameter_truncate BEFORE TRUNCATE ON parameter FOR EACH STATEMENT EXECUTE FUNCTION ledger_refuse_truncate();

-- +goose Down
DROP TABLE parameter;
