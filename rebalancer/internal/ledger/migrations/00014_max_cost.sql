-- The largest cost of a request, in tokens: limits that hold only few of the dearest requests are tiny, and dearer requests are
-- too large. NULL declares none. The bounds are those of limit.Rule.Validate.
--
-- +goose Up
ALTER TABLE rate_limit_rule
    ADD COLUMN max_cost BIGINT,
    ADD CONSTRAINT rule_max_cost CHECK (max_cost BETWEEN 1 AND capacity / shards);

-- +goose Down
ALTER TABLE rate_limit_rule
    DROP CONSTRAINT rule_max_cost,
    DROP COLUMN max_cost;
