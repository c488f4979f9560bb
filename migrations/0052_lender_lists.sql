-- +goose NO TRANSACTION
-- +goose Up
-- The orders in which the lender's systems read: applications by their last change, draws of a state
-- by their age. Built beside writers; an index that was interrupted is there, but not valid.
SET lock_timeout = 0;
DROP INDEX CONCURRENTLY IF EXISTS applications_updated;
CREATE INDEX CONCURRENTLY applications_updated ON applications (updated_at, application_uid);
DROP INDEX CONCURRENTLY IF EXISTS disbursements_by_status;
CREATE INDEX CONCURRENTLY disbursements_by_status
    ON disbursements (status, requested_at, merchant_disbursement_id);

-- +goose Down
DROP INDEX IF EXISTS disbursements_by_status, applications_updated;
