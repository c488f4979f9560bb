-- +goose NO TRANSACTION
-- +goose Up
-- What waits for a decision, by age. Built beside writers; an index that was interrupted is there,
-- but not valid.
SET lock_timeout = 0;
DROP INDEX CONCURRENTLY IF EXISTS applications_undecided;
CREATE INDEX CONCURRENTLY applications_undecided ON applications (created_at)
    WHERE status IN ('Pending Review', 'Hard Pull Authorization', 'Hard Pull', 'Pend Clearance');

-- +goose Down
DROP INDEX IF EXISTS applications_undecided;
