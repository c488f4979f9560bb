-- +goose NO TRANSACTION
-- +goose Up
-- A borrower is found by how the name begins, whole or the last one alone. Built beside writers; an
-- index that was interrupted is there, but not valid.
SET lock_timeout = 0;
DROP INDEX CONCURRENTLY IF EXISTS applications_name_search;
CREATE INDEX CONCURRENTLY applications_name_search ON applications
    (lower(borrower_first_name || ' ' || borrower_last_name) text_pattern_ops);
DROP INDEX CONCURRENTLY IF EXISTS applications_last_name_search;
CREATE INDEX CONCURRENTLY applications_last_name_search ON applications
    (lower(borrower_last_name) text_pattern_ops);

-- +goose Down
DROP INDEX IF EXISTS applications_last_name_search, applications_name_search;
