-- What the control plane must not forget of regions' leases: under which number a leader has last acted in a region's name (a
-- region that lives under a lower one is refused), whether all of the region keeps to its floor without a lease, and the
-- largest share that it has ever called its floor.
--
-- +goose Up
CREATE TABLE region_lease (
    region      VARCHAR(64) PRIMARY KEY,
    incarnation BIGINT      NOT NULL DEFAULT 0,
    fences      BOOLEAN     NOT NULL DEFAULT false,
    floor_share INT         NOT NULL DEFAULT 0 CONSTRAINT region_lease_floor CHECK (floor_share BETWEEN 0 AND 1000000)
);
-- +goose StatementBegin
DO $$
BEGIN
    GRANT SELECT, INSERT, UPDATE, DELETE ON region_lease TO partidor_rebalancer;
    GRANT SELECT ON region_lease TO partidor_operator;
EXCEPTION
    WHEN undefined_object OR insufficient_privilege THEN RAISE NOTICE 'roles not granted: %', SQLERRM;
END $$;
-- +goose StatementEnd

-- +goose Down
DROP TABLE region_lease;
