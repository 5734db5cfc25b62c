-- A sharded key lives in many slots, so it cannot be charged together with a limit over all of its tenant's routes. A rule
-- with shards and a rule of the route '@tenant' are refused where they may concern one tenant: the same, everybody, or a
-- plan, whose tenants may change.
--
-- +goose Up
-- +goose StatementBegin
CREATE FUNCTION rule_check_shards() RETURNS TRIGGER LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
    other RECORD;
BEGIN
    SELECT r.tenant_id, r.route_id INTO other FROM rate_limit_rule r
     WHERE (CASE WHEN NEW.shards > 1 THEN r.route_id = '@tenant' ELSE r.shards > 1 END)
       AND (r.tenant_id = NEW.tenant_id OR r.tenant_id = '*' OR NEW.tenant_id = '*' OR left(r.tenant_id, 1) = '@' OR left(NEW.tenant_id, 1) = '@')
     LIMIT 1;
    IF FOUND THEN
        RAISE EXCEPTION 'shards of a key cannot be charged together with a limit of @tenant: see the rule of %/%', other.tenant_id, other.route_id
            USING ERRCODE = 'check_violation', CONSTRAINT = 'rule_shards_and_tenant';
    END IF;
    RETURN NULL;
END $$;
-- +goose StatementEnd

CREATE INDEX rule_sharded ON rate_limit_rule (tenant_id) WHERE shards > 1 OR route_id = '@tenant';
CREATE CONSTRAINT TRIGGER rule_shards_and_tenant AFTER INSERT OR UPDATE ON rate_limit_rule DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW WHEN (NEW.shards > 1 OR NEW.route_id = '@tenant') EXECUTE FUNCTION rule_check_shards();

-- +goose Down
DROP TRIGGER rule_shards_and_tenant ON rate_limit_rule;
DROP INDEX rule_sharded;
DROP FUNCTION rule_check_shards();
