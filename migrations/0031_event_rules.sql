-- +goose Up
-- A traceparent has one length only, and one writer.
ALTER TABLE events DROP CONSTRAINT events_traceparent_check;

-- +goose Down
ALTER TABLE events ADD CONSTRAINT events_traceparent_check CHECK (length(traceparent) <= 100);
