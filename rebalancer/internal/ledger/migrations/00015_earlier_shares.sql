-- What each region's published share was before it was changed, the newest last: [{"share": ppm, "until": seconds since 1970}].
-- Gateways need it for limits by windows: of share that one region has gained of late, another one may have used as much in the
-- same window. So they count it a window later.
--
-- +goose Up
ALTER TABLE region ADD COLUMN earlier_shares JSONB NOT NULL DEFAULT '[]';

-- +goose StatementBegin
CREATE FUNCTION region_keep_earlier() RETURNS TRIGGER LANGUAGE plpgsql AS $$
DECLARE
    most CONSTANT INT := 64;
BEGIN
    NEW.earlier_shares := OLD.earlier_shares;
    IF NEW.published_share <> OLD.published_share THEN
        NEW.earlier_shares := OLD.earlier_shares || jsonb_build_array(
            jsonb_build_object('share', OLD.published_share, 'until', extract(epoch FROM clock_timestamp())));
        WHILE jsonb_array_length(NEW.earlier_shares) > most LOOP
            NEW.earlier_shares := NEW.earlier_shares - 0;
        END LOOP;
    END IF;
    RETURN NEW;
END $$;
-- +goose StatementEnd
CREATE TRIGGER region_b_earlier BEFORE UPDATE ON region FOR EACH ROW EXECUTE FUNCTION region_keep_earlier();

-- +goose Down
DROP TRIGGER region_b_earlier ON region;
DROP FUNCTION region_keep_earlier();
ALTER TABLE region DROP COLUMN earlier_shares;
