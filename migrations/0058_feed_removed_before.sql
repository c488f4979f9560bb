-- +goose NO TRANSACTION
-- +goose Up
-- A trigger, because the release before this one removes too and keeps no account of it.
CREATE OR REPLACE TRIGGER feed_removed AFTER DELETE ON feed REFERENCING OLD TABLE AS gone
    FOR EACH STATEMENT EXECUTE FUNCTION drawbridge_feed_removed();

-- What was removed before: positions are given without gaps.
-- +goose StatementBegin
DO $$
DECLARE
    gap bigint;
BEGIN
    SELECT max(position) - 1 INTO gap
      FROM (SELECT position, lag(position, 1, 0::bigint) OVER (ORDER BY position) AS former
              FROM feed) AS places
     WHERE position > former + 1;
    -- Nothing is published between the two looks at the feed's end.
    PERFORM FROM feed_head FOR UPDATE;
    UPDATE feed_head h
       SET removed = greatest(h.removed, gap, CASE
               WHEN NOT EXISTS (SELECT FROM feed f WHERE f.position = h.position)
               THEN h.position END);
END
$$;
-- +goose StatementEnd

-- Retention finds what is old by it, wherever in the feed that stands. Built beside writers; an
-- index that was interrupted is there, but not valid.
SET lock_timeout = 0;
DROP INDEX CONCURRENTLY IF EXISTS feed_occurred;
CREATE INDEX CONCURRENTLY feed_occurred ON feed USING brin (occurred_at)
    WITH (autosummarize = on, pages_per_range = 32);

-- +goose Down
DROP INDEX IF EXISTS feed_occurred;
DROP TRIGGER IF EXISTS feed_removed ON feed;
