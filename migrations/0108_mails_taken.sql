-- +goose NO TRANSACTION
-- +goose Up
-- Whether the mail server took an e-mail since a time. Built beside writers; an index that was
-- interrupted is there, but not valid.
SET lock_timeout = 0;
DROP INDEX CONCURRENTLY IF EXISTS emails_sent;
CREATE INDEX CONCURRENTLY emails_sent ON emails (finished_at) WHERE state = 'sent';

-- +goose Down
DROP INDEX IF EXISTS emails_sent;
