-- Recorded demand, for plots and previews: tokens per second offered and refused, and the share in force, per key and
-- region. The keys that offer most are recorded one by one every minute; the rest is summed as the key ('*', '*'). Minutes
-- are kept for a day and rolled up into hours, which are kept as long as the history.
--
-- +goose Up
CREATE TABLE demand (
    step_seconds INT         NOT NULL CONSTRAINT demand_step CHECK (step_seconds IN (60, 3600)),
    at           TIMESTAMPTZ NOT NULL, -- end of the minute, or beginning of the hour
    tenant_id    VARCHAR(64) NOT NULL,
    route_id     VARCHAR(64) NOT NULL,
    region       VARCHAR(64) NOT NULL,
    offered      REAL        NOT NULL,
    refused      REAL        NOT NULL,
    share        INT         NOT NULL, -- parts per million; 0 for the sum of the rest
    PRIMARY KEY (step_seconds, tenant_id, route_id, at, region)
);
CREATE INDEX demand_at ON demand (step_seconds, at);

-- +goose StatementBegin
DO $$
BEGIN
    GRANT SELECT ON demand TO partidor_operator, partidor_rebalancer;
    GRANT INSERT, UPDATE, DELETE ON demand TO partidor_rebalancer;
EXCEPTION
    WHEN undefined_object OR insufficient_privilege THEN RAISE NOTICE 'roles not granted: %', SQLERRM;
END $$;
-- +goose StatementEnd

-- +goose Down
DROP TABLE demand;
