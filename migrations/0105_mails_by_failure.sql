-- +goose NO TRANSACTION
-- +goose Up
-- Which e-mails failed since a time, however long they had waited. Built beside writers; an index
-- that was interrupted is there, but not valid.
SET lock_timeout = 0;
DROP INDEX CONCURRENTLY IF EXISTS emails_failed;
CREATE INDEX CONCURRENTLY emails_failed ON emails (finished_at) WHERE state = 'failed';

-- +goose Down
DROP INDEX IF EXISTS emails_failed;
