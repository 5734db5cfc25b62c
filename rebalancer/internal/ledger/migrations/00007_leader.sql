-- One active rebalancer among several. Nobody compares wall clocks: a candidate watches (term, renewals) and takes over
-- when they have stood still for a whole lease on its own monotonic clock, by compare-and-set.
--
-- term is the fencing token of every write and every advice. It never goes back: terms of ledger epoch e begin at e × 2^32,
-- so that a fail-over which forgets a take-over cannot give the same term out again.
--
-- +goose Up
CREATE TABLE leader (
    only_row    BOOLEAN     PRIMARY KEY DEFAULT true CHECK (only_row),
    term        BIGINT      NOT NULL,
    holder      TEXT        NOT NULL DEFAULT '', -- '' after a leader has resigned: free to take
    renewals    BIGINT      NOT NULL DEFAULT 0,
    since       TIMESTAMPTZ NOT NULL DEFAULT now(),
    renewed_at  TIMESTAMPTZ NOT NULL DEFAULT now(), -- for people; no decision depends on it
    cycle       BIGINT      NOT NULL DEFAULT 0,     -- the last cycle committed, and when
    decided_at  TIMESTAMPTZ
) WITH (fillfactor = 10);
INSERT INTO leader (term) VALUES (1::bigint << 32);

-- +goose StatementBegin
-- Refuses a transaction whose term is no longer the leader's. Called last before COMMIT: the row lock it takes keeps a
-- take-over waiting for exactly that commit.
CREATE FUNCTION ledger_fence(claimed BIGINT) RETURNS VOID LANGUAGE plpgsql AS $$
DECLARE
    current_term BIGINT;
BEGIN
    SELECT term INTO current_term FROM leader FOR SHARE;
    IF current_term <> claimed THEN
        RAISE EXCEPTION 'term % is over, the leader''s term is %', claimed, current_term USING ERRCODE = 'PD001';
    END IF;
END $$;
-- +goose StatementEnd

-- +goose Down
DROP FUNCTION ledger_fence(BIGINT);
DROP TABLE leader;
