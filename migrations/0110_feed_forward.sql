-- +goose Up
-- Of two that move the head at the same time, the later one was judged before it waited for the
-- other: neither the newest position nor what was removed goes back.
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION drawbridge_move_feed_head() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE feed_floor
       SET position = greatest(position, NEW.position),
           numbered_until = NEW.numbered_until,
           removed = greatest(removed, NEW.removed);
    RETURN NEW;
END
$$;
-- +goose StatementEnd

-- +goose Down
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION drawbridge_move_feed_head() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE feed_floor
       SET position = NEW.position,
           numbered_until = NEW.numbered_until,
           removed = NEW.removed;
    RETURN NEW;
END
$$;
-- +goose StatementEnd
