-- +goose Up
LOCK TABLE installation, emails IN ACCESS EXCLUSIVE MODE;

-- Which environment the database is of, recorded by the first process that serves it.
ALTER TABLE installation
    ADD COLUMN environment text
        CONSTRAINT installation_environment_check
        CHECK (environment IN ('development', 'sandbox', 'production'));

-- A sandbox keeps what it does not send. No row can break the wider rule.
ALTER TABLE emails
    DROP CONSTRAINT emails_state_check,
    ADD CONSTRAINT emails_state_check CHECK (state IN ('queued', 'sent', 'failed', 'suppressed',
        'not_sent', 'captured')) NOT VALID;

-- +goose Down
LOCK TABLE installation, emails IN ACCESS EXCLUSIVE MODE;
ALTER TABLE installation DROP COLUMN environment;
UPDATE emails SET state = 'not_sent' WHERE state = 'captured';
ALTER TABLE emails
    DROP CONSTRAINT emails_state_check,
    ADD CONSTRAINT emails_state_check CHECK (state IN ('queued', 'sent', 'failed', 'suppressed',
        'not_sent'));
