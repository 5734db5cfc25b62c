-- An end is a day that JSON can say, or none (NULL): 'infinity' and the year 12026 would reach gateways as rows that they
-- cannot read or not save.
--
-- +goose Up
UPDATE rate_limit_rule SET expires_at = NULL WHERE expires_at >= '10000-01-01Z';
UPDATE rate_limit_rule SET expires_at = '1970-01-01Z' WHERE expires_at < '1970-01-01Z';
UPDATE api_key SET expires_at = NULL WHERE expires_at >= '10000-01-01Z';
UPDATE api_key SET expires_at = '1970-01-01Z' WHERE expires_at < '1970-01-01Z';
UPDATE split SET pin_expires_at = NULL WHERE pin_expires_at >= '10000-01-01Z';
UPDATE split SET pin_expires_at = '1970-01-01Z' WHERE pin_expires_at < '1970-01-01Z';
SET CONSTRAINTS ALL IMMEDIATE; -- a table with events to come cannot be altered
ALTER TABLE rate_limit_rule ADD CONSTRAINT rule_expires_at CHECK (expires_at >= '1970-01-01Z' AND expires_at < '10000-01-01Z');
ALTER TABLE api_key ADD CONSTRAINT api_key_expires_at CHECK (expires_at >= '1970-01-01Z' AND expires_at < '10000-01-01Z');
ALTER TABLE split ADD CONSTRAINT split_pin_expires_at CHECK (pin_expires_at >= '1970-01-01Z' AND pin_expires_at < '10000-01-01Z');

-- +goose Down
ALTER TABLE split DROP CONSTRAINT split_pin_expires_at;
ALTER TABLE api_key DROP CONSTRAINT api_key_expires_at;
ALTER TABLE rate_limit_rule DROP CONSTRAINT rule_expires_at;
