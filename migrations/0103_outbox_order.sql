-- +goose Up
-- Whoever publishes an event looks whether the one before it waits still: its transaction may have
-- been about to commit for so long that looks begin behind its place. Null where the release before
-- recorded the event.
ALTER TABLE outbox ADD COLUMN sequence bigint;
CREATE INDEX outbox_sequence ON outbox (application_uid, sequence);

-- +goose Down
DROP INDEX outbox_sequence;
ALTER TABLE outbox DROP COLUMN sequence;
