-- +goose Up
-- What else a stored fingerprint's request is known by, each bound to the fingerprint: see
-- internal/idempotency. NULL: written by a release that knew one encoding.
ALTER TABLE idempotency_keys ADD COLUMN encodings bytea[];

-- +goose Down
ALTER TABLE idempotency_keys DROP COLUMN encodings;
