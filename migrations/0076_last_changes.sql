-- +goose NO TRANSACTION
-- +goose Up
-- Disbursements by when they changed last, which is how a day's are found.
SET lock_timeout = 0;
DROP INDEX CONCURRENTLY IF EXISTS disbursements_last_change;
CREATE INDEX CONCURRENTLY disbursements_last_change ON disbursements
    (greatest(requested_at, processing_at, settled_at, cancelled_at, returned_at));

-- +goose Down
DROP INDEX IF EXISTS disbursements_last_change;
