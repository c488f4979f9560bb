-- +goose Up
-- On its own, because it reads all deliveries, and holds nobody up only where nothing else has.
ALTER TABLE deliveries VALIDATE CONSTRAINT deliveries_sound;

-- +goose Down
SELECT 1;
