-- +goose Up
-- Why an attempt failed, as a code; error says the same to people. NULL: it succeeded, or was
-- written by a release that kept only the text.
ALTER TABLE attempts ADD COLUMN cause text;

-- +goose Down
ALTER TABLE attempts DROP COLUMN cause;
