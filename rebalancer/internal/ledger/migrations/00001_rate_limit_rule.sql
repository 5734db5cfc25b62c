-- Rules: who may do how much. tenant_id and route_id may be '*'; see 00003 for everything else a rule can say.
--
-- +goose Up
CREATE TABLE rate_limit_rule (
    id                BIGSERIAL   PRIMARY KEY,
    tenant_id         VARCHAR(64) NOT NULL,
    route_id          VARCHAR(64) NOT NULL,
    capacity          INT         NOT NULL CONSTRAINT rule_capacity_positive CHECK (capacity > 0),
    refill_per_second INT         NOT NULL CONSTRAINT rule_refill_positive CHECK (refill_per_second > 0),
    updated_at        TIMESTAMPTZ NOT NULL DEFAULT now(),
    CONSTRAINT rule_key UNIQUE (tenant_id, route_id)
);

-- +goose Down
DROP TABLE rate_limit_rule;
