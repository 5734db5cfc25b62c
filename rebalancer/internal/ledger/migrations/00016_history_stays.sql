-- History is written once. Nobody but the schema's owner changes an entry, and whoever may drop entries, which is what ageing does,
-- drops none younger than a week, the least that history_days may say. A trigger rather than a function in the place of the right
-- to delete: the release before ages history by itself, and goes on doing so beside this schema.
--
-- +goose Up
-- +goose StatementBegin
CREATE FUNCTION history_stays() RETURNS TRIGGER LANGUAGE plpgsql AS $$
BEGIN
    IF OLD.at > now() - interval '7 days' THEN
        RAISE EXCEPTION 'history entry % is younger than 7 days, and stays', OLD.id USING ERRCODE = 'insufficient_privilege';
    END IF;
    RETURN OLD;
END $$;
-- +goose StatementEnd
CREATE TRIGGER history_stays BEFORE DELETE ON history FOR EACH ROW EXECUTE FUNCTION history_stays();

-- +goose StatementBegin
DO $$
BEGIN
    REVOKE UPDATE ON history FROM partidor_rebalancer;
EXCEPTION
    WHEN undefined_object OR insufficient_privilege THEN RAISE NOTICE 'right not taken back: %', SQLERRM;
END $$;
-- +goose StatementEnd

-- +goose Down
DROP TRIGGER history_stays ON history;
DROP FUNCTION history_stays();
-- +goose StatementBegin
DO $$
BEGIN
    GRANT UPDATE ON history TO partidor_rebalancer;
EXCEPTION
    WHEN undefined_object OR insufficient_privilege THEN RAISE NOTICE 'right not given back: %', SQLERRM;
END $$;
-- +goose StatementEnd
