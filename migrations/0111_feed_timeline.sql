-- +goose Up
-- The server's timeline, another one after each promotion: a standby that takes over may lack the
-- last commits, and would give their positions to other events. NULL where a managed server does not
-- tell.
-- +goose StatementBegin
CREATE FUNCTION drawbridge_timeline() RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    RETURN left(pg_walfile_name(pg_current_wal_insert_lsn()), 8);
EXCEPTION WHEN feature_not_supported OR insufficient_privilege THEN
    RETURN NULL;
END
$$;
-- +goose StatementEnd

-- The one that the newest position belongs to, NULL until the first is published. Of the release
-- before, nothing changes it.
ALTER TABLE feed_floor ADD COLUMN timeline text;

-- +goose Down
ALTER TABLE feed_floor DROP COLUMN timeline;
DROP FUNCTION drawbridge_timeline();
