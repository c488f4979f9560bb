-- +goose NO TRANSACTION
-- +goose Up
-- What failed lately at any endpoint. Built beside writers; an index that was interrupted is there,
-- but not valid.
SET lock_timeout = 0;
DROP INDEX CONCURRENTLY IF EXISTS subscription_errors_hour;
CREATE INDEX CONCURRENTLY subscription_errors_hour ON subscription_errors (hour);

-- +goose Down
DROP INDEX IF EXISTS subscription_errors_hour;
