-- +goose Up
-- How mail looks and who hears of trouble: one row, which the settings page edits.
CREATE TABLE mail_settings (
    only_row      boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    lender_name   text NOT NULL CHECK (length(lender_name) BETWEEN 1 AND 100),
    primary_color text NOT NULL CHECK (primary_color ~ '^#[0-9a-f]{6}$'),
    accent_color  text NOT NULL CHECK (accent_color ~ '^#[0-9a-f]{6}$'),
    reply_to      text NOT NULL,
    alert_to      text[] NOT NULL,
    updated_at    timestamptz,
    updated_by    text
);
INSERT INTO mail_settings (lender_name, primary_color, accent_color, reply_to, alert_to)
VALUES ('Drawbridge', '#1d3f72', '#b84f14', '', '{}');

-- params holds what the mail is rendered from. What was rendered is kept from the first attempt
-- on, so that every re-send carries the same text; source is the whole message as it goes onto
-- the wire, the same bytes on every attempt.
CREATE TABLE emails (
    email_uid       uuid PRIMARY KEY,
    application_uid uuid REFERENCES applications,
    kind            text NOT NULL CHECK (kind IN ('welcome', 'stipulation', 'task',
                        'subscription_failing', 'subscription_recovered', 'attempts_used_up')),
    to_name         text NOT NULL,
    to_address      text NOT NULL,
    params          jsonb NOT NULL,
    state           text NOT NULL CHECK (state IN ('queued', 'sent', 'failed', 'suppressed', 'not_sent')),
    reason          text NOT NULL DEFAULT '',
    outcome_unknown boolean NOT NULL DEFAULT false,
    attempt_count   integer NOT NULL DEFAULT 0 CHECK (attempt_count >= 0),
    next_attempt_at timestamptz,
    subject         text NOT NULL DEFAULT '',
    html_body       text NOT NULL DEFAULT '',
    text_body       text NOT NULL DEFAULT '',
    message_id      text UNIQUE,
    source          text NOT NULL DEFAULT '',
    rendered_at     timestamptz,
    resend_of       uuid REFERENCES emails,
    resent_by       text NOT NULL DEFAULT '',
    resend_reason   text NOT NULL DEFAULT '',
    created_at      timestamptz NOT NULL,
    finished_at     timestamptz,
    CHECK ((next_attempt_at IS NOT NULL) = (state = 'queued')),
    CHECK ((finished_at IS NOT NULL) = (state <> 'queued')),
    CHECK (NOT outcome_unknown OR state = 'failed'),
    CHECK ((resend_of IS NULL) = (resent_by = ''))
);
CREATE INDEX emails_created ON emails (created_at DESC, email_uid DESC);
CREATE INDEX emails_state ON emails (state, created_at DESC, email_uid DESC) WHERE state <> 'sent';
CREATE INDEX emails_kind ON emails (kind, created_at DESC, email_uid DESC);
CREATE INDEX emails_address ON emails (lower(to_address), created_at DESC, email_uid DESC);
CREATE INDEX emails_application ON emails (application_uid, created_at DESC, email_uid DESC)
    WHERE application_uid IS NOT NULL;
CREATE INDEX emails_resends ON emails (resend_of) WHERE resend_of IS NOT NULL;
-- A borrower is welcomed once, whatever is repeated or raced; a re-send by support is another row.
CREATE UNIQUE INDEX emails_one_welcome ON emails (application_uid)
    WHERE kind = 'welcome' AND resend_of IS NULL AND state <> 'suppressed';

-- A row exists before the connection is opened. handed_over_at is committed before the message's
-- closing dot leaves: without it nothing was sent, with it and without an answer nobody knows.
CREATE TABLE email_attempts (
    email_uid      uuid NOT NULL REFERENCES emails,
    number         integer NOT NULL CHECK (number >= 1),
    started_at     timestamptz NOT NULL,
    handed_over_at timestamptz,
    finished_at    timestamptz,
    outcome        text CHECK (outcome IN ('sent', 'temporary', 'permanent', 'interrupted', 'unknown')),
    stage          text NOT NULL DEFAULT '',
    reply_code     integer CHECK (reply_code BETWEEN 200 AND 599),
    reply          text NOT NULL DEFAULT '',
    error          text NOT NULL DEFAULT '',
    server         text NOT NULL,
    tls            text NOT NULL DEFAULT '',
    PRIMARY KEY (email_uid, number),
    CHECK ((outcome IS NULL) = (finished_at IS NULL)),
    CHECK (outcome NOT IN ('sent', 'unknown') OR handed_over_at IS NOT NULL)
);

-- +goose Down
DROP TABLE email_attempts, emails, mail_settings;
