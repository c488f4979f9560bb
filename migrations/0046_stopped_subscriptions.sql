-- +goose Up
-- Since when nothing is sent because the secret or the headers do not open; their deliveries wait.
ALTER TABLE subscriptions ADD COLUMN stopped_at timestamptz;

-- +goose Down
ALTER TABLE subscriptions DROP COLUMN stopped_at;
