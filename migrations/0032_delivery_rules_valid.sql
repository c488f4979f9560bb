-- +goose Up
-- On its own, because it reads all deliveries, beside those who write them.
ALTER TABLE deliveries VALIDATE CONSTRAINT deliveries_sound;

-- +goose Down
SELECT 1;
