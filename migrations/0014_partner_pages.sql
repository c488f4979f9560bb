-- +goose NO TRANSACTION
-- +goose Up
-- Forms of the console that were sent: the second arrival of the same form is led to what the
-- first one did.
CREATE TABLE IF NOT EXISTS console_submissions (
    token  uuid PRIMARY KEY,
    at     timestamptz NOT NULL,
    actor  text NOT NULL,
    target text NOT NULL DEFAULT ''
);
CREATE INDEX IF NOT EXISTS console_submissions_at ON console_submissions (at);

-- The last four characters of a client's secrets, by which people tell them apart; null for a
-- secret that was issued before.
ALTER TABLE clients ADD COLUMN IF NOT EXISTS secret_hint text CHECK (length(secret_hint) = 4);
ALTER TABLE clients ADD COLUMN IF NOT EXISTS previous_secret_hint text
    CHECK (length(previous_secret_hint) = 4);

CREATE INDEX IF NOT EXISTS partners_created ON partners (created_at DESC, partner_uid DESC);
CREATE INDEX IF NOT EXISTS partners_name ON partners (lower(name) text_pattern_ops);

-- Lists of loans, newest first. Loans are many: their tables stay open to writers meanwhile.
-- An index that was interrupted is there, but not valid. Building one beside writers waits for
-- those who were there before and holds up nobody.
SET lock_timeout = 0;
DROP INDEX CONCURRENTLY IF EXISTS loans_opened;
CREATE INDEX CONCURRENTLY loans_opened
    ON loans (opened_at DESC, application_uid DESC);
DROP INDEX CONCURRENTLY IF EXISTS loans_product;
CREATE INDEX CONCURRENTLY loans_product
    ON loans (product_uid, opened_at DESC, application_uid DESC);
DROP INDEX CONCURRENTLY IF EXISTS disbursements_requested;
CREATE INDEX CONCURRENTLY disbursements_requested
    ON disbursements (requested_at DESC, merchant_disbursement_id DESC);

-- +goose Down
DROP INDEX IF EXISTS disbursements_requested, loans_product, loans_opened, partners_name,
    partners_created;
ALTER TABLE clients DROP COLUMN IF EXISTS previous_secret_hint, DROP COLUMN IF EXISTS secret_hint;
DROP TABLE IF EXISTS console_submissions;
