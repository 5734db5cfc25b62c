-- After a ledger has been put back from a copy, it has forgotten revisions that gateways have already seen. A higher epoch tells
-- them to load everything again. It rises by the minutes since 2026 began as well, so that two restores of one copy do not end in
-- the same epoch.
UPDATE ledger_revision SET epoch = epoch + 1 + extract(epoch FROM now() - TIMESTAMPTZ '2026-01-01 00:00:00+00')::bigint / 60;
SELECT pg_notify('partidor_changed', epoch || '.0') FROM ledger_revision;
