-- Three group roles without login: grant them to the users of each part. Where the migrating user may not create roles,
-- this does nothing and an administrator grants the same by hand.
--
-- partidor_gateway reads what gateways need; partidor_operator edits rules, tenants, keys, regions and parameters by SQL
-- (triggers revision and record the edits); partidor_rebalancer does everything but change the schema.
--
-- +goose Up
-- Triggers call these as their owner; nobody else needs to.
REVOKE EXECUTE ON FUNCTION ledger_next_revision(), ledger_observe_timeline() FROM PUBLIC;

-- +goose StatementBegin
DO $$
DECLARE
    name TEXT;
BEGIN
    FOREACH name IN ARRAY ARRAY['partidor_gateway', 'partidor_operator', 'partidor_rebalancer'] LOOP
        BEGIN
            IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = name) THEN
                EXECUTE format('CREATE ROLE %I NOLOGIN', name);
            END IF;
        EXCEPTION
            -- Another database of this cluster is being migrated at the same moment.
            WHEN duplicate_object OR unique_violation THEN NULL;
        END;
    END LOOP;
    GRANT SELECT ON ledger_revision, tombstone, rate_limit_rule, tenant, api_key, region, split, parameter
        TO partidor_gateway, partidor_operator, partidor_rebalancer;
    GRANT SELECT ON history, rule_history, split_history, parameter_history, directory_history, leader
        TO partidor_operator, partidor_rebalancer;
    GRANT INSERT, UPDATE, DELETE ON rate_limit_rule, tenant, api_key, region, parameter TO partidor_operator, partidor_rebalancer;
    GRANT INSERT, UPDATE, DELETE ON split, history TO partidor_rebalancer;
    GRANT UPDATE ON leader TO partidor_rebalancer;
    GRANT EXECUTE ON FUNCTION ledger_observe_timeline() TO partidor_rebalancer;
    GRANT USAGE ON SEQUENCE rate_limit_rule_id_seq TO partidor_operator, partidor_rebalancer;
    GRANT USAGE ON SEQUENCE history_id_seq TO partidor_rebalancer;
EXCEPTION
    WHEN insufficient_privilege THEN RAISE NOTICE 'roles not created: %', SQLERRM;
END $$;
-- +goose StatementEnd

-- +goose Down
-- Roles belong to the whole cluster and may be used by another database; their grants go with the tables.
SELECT 1;
