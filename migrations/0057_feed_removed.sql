-- +goose Up
-- The newest position that was removed, 0 for none: whoever has read no further may have missed
-- something.
ALTER TABLE feed_head ADD COLUMN removed bigint NOT NULL DEFAULT 0;

-- +goose StatementBegin
CREATE FUNCTION drawbridge_feed_removed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE feed_head
       SET removed = newest.position
      FROM (SELECT max(position) AS position FROM gone) AS newest
     WHERE removed < newest.position;
    RETURN NULL;
END
$$;
-- +goose StatementEnd

-- +goose Down
DROP FUNCTION drawbridge_feed_removed();
ALTER TABLE feed_head DROP COLUMN removed;
