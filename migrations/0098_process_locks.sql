-- +goose Up
-- The key of the advisory lock that a session of the process holds for as long as it lives; NULL for
-- a process that holds none: one of an older release, behind a pooler, or between two connections.
ALTER TABLE processes ADD COLUMN lock_key bigint;

-- +goose Down
ALTER TABLE processes DROP COLUMN lock_key;
