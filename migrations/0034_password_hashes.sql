-- +goose Up
ALTER TABLE users
    -- What sessions know the password by once its hash was made anew with other
    -- parameters; null while that is the hash itself.
    ADD COLUMN credential text;
-- An enrolment that waits for its first code belongs to the session that began it.
DELETE FROM second_factors WHERE confirmed_at IS NULL;

-- +goose Down
ALTER TABLE users DROP COLUMN credential;
