-- A shard holds its part of a region's part: below a token it would never admit anything. The bound is limit.MinShardCapacity.
--
-- +goose Up
UPDATE rate_limit_rule SET shards = 1 WHERE shards > 1 AND capacity < shards * 100::bigint;
SET CONSTRAINTS ALL IMMEDIATE; -- a table with events to come cannot be altered
ALTER TABLE rate_limit_rule ADD CONSTRAINT rule_shard_capacity CHECK (shards = 1 OR capacity >= shards * 100::bigint);

-- +goose Down
ALTER TABLE rate_limit_rule DROP CONSTRAINT rule_shard_capacity;
