-- +goose Up
-- Where the process can be reached; empty for one of an older release.
ALTER TABLE processes ADD COLUMN url text NOT NULL DEFAULT '';

-- +goose Down
ALTER TABLE processes DROP COLUMN url;
