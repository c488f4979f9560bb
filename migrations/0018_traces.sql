-- +goose Up
-- The trace of the call that caused an event, in the form of the traceparent header: attempts
-- made later, by whatever process, belong to it.
ALTER TABLE events ADD COLUMN traceparent text CHECK (length(traceparent) <= 100);

-- +goose Down
ALTER TABLE events DROP COLUMN traceparent;
