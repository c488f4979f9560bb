-- +goose Up
-- The newest day of statements when this one was last looked through for what changed since. A look
-- through all days may take longer than a round: the next one goes on where it ended.
ALTER TABLE statement_days ADD COLUMN corrected_with date;

-- +goose Down
ALTER TABLE statement_days DROP COLUMN corrected_with;
