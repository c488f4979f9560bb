-- +goose Up
LOCK TABLE installation IN ACCESS EXCLUSIVE MODE;

-- When somebody last said that a backup was made, for the alert that none was for long.
ALTER TABLE installation ADD COLUMN backed_up_at timestamptz;

-- +goose Down
LOCK TABLE installation IN ACCESS EXCLUSIVE MODE;
ALTER TABLE installation DROP COLUMN backed_up_at;
