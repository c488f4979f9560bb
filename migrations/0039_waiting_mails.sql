-- +goose Up
LOCK TABLE emails, email_attempts IN ACCESS EXCLUSIVE MODE;

-- What a queued mail waits for, and has no job meanwhile: the mail server, which refuses us
-- whoever the mail is for, or the application's welcome mail. refusals counts the attempts that
-- such an answer ended, which are none of the mail's tries.
ALTER TABLE emails
    ADD COLUMN waits_for text NOT NULL DEFAULT '',
    ADD COLUMN refusals  integer NOT NULL DEFAULT 0,
    ADD CONSTRAINT emails_waits_for_check CHECK (waits_for IN ('', 'server', 'welcome')) NOT VALID,
    ADD CONSTRAINT emails_refusals_check CHECK (refusals BETWEEN 0 AND attempt_count) NOT VALID;
ALTER TABLE email_attempts
    DROP CONSTRAINT email_attempts_outcome_check,
    ADD CONSTRAINT email_attempts_outcome_check CHECK (outcome IN ('sent', 'temporary', 'permanent',
        'interrupted', 'unknown', 'refused')) NOT VALID;

-- The mail server refuses us: no row while it does not.
CREATE TABLE mail_stop (
    only_row      boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    since         timestamptz NOT NULL,
    answer        text NOT NULL,
    probes        integer NOT NULL DEFAULT 0,
    next_probe_at timestamptz NOT NULL
);

-- +goose Down
LOCK TABLE emails, email_attempts IN ACCESS EXCLUSIVE MODE;
DROP TABLE mail_stop;
UPDATE email_attempts SET outcome = 'temporary' WHERE outcome = 'refused';
ALTER TABLE email_attempts
    DROP CONSTRAINT email_attempts_outcome_check,
    ADD CONSTRAINT email_attempts_outcome_check CHECK (outcome IN ('sent', 'temporary', 'permanent',
        'interrupted', 'unknown'));
ALTER TABLE emails DROP COLUMN waits_for, DROP COLUMN refusals;
