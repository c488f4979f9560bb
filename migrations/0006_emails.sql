-- +goose Up
-- params holds what the mail was rendered from; the rendered text is kept once it was sent.
CREATE TABLE emails (
    email_uid       uuid PRIMARY KEY,
    application_uid uuid REFERENCES applications,
    kind            text NOT NULL,
    to_name         text NOT NULL,
    to_address      text NOT NULL,
    params          jsonb NOT NULL,
    state           text NOT NULL CHECK (state IN ('queued', 'sent', 'failed', 'suppressed', 'not_sent')),
    reason          text NOT NULL DEFAULT '',
    attempt_count   integer NOT NULL DEFAULT 0,
    resend_of       uuid REFERENCES emails,
    created_at      timestamptz NOT NULL,
    finished_at     timestamptz
);
CREATE INDEX emails_created ON emails (created_at DESC, email_uid DESC);
CREATE INDEX emails_application ON emails (application_uid, created_at DESC);
-- A borrower is welcomed once, whatever is repeated or raced; a re-send by support is another row.
CREATE UNIQUE INDEX emails_one_welcome ON emails (application_uid)
    WHERE kind = 'welcome' AND resend_of IS NULL AND state <> 'suppressed';

-- +goose Down
DROP TABLE emails;
