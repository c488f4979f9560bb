-- +goose Up
LOCK TABLE emails IN ACCESS EXCLUSIVE MODE;
LOCK TABLE subscriptions IN SHARE ROW EXCLUSIVE MODE;
LOCK TABLE partners IN ACCESS EXCLUSIVE MODE;

-- Whom to tell at the partner when its deliveries fail for good.
ALTER TABLE partners ADD COLUMN contact text CHECK (contact <> '');

-- No row can break the wider rule.
ALTER TABLE emails
    DROP CONSTRAINT emails_kind_check,
    ADD CONSTRAINT emails_kind_check CHECK (kind IN ('welcome', 'stipulation', 'task',
        'subscription_failing', 'subscription_recovered', 'attempts_used_up',
        'deliveries_failed')) NOT VALID;

-- What failed for good and no mail has told yet, and when the last mail went out.
CREATE TABLE untold_failures (
    subscription_uid uuid NOT NULL REFERENCES subscriptions,
    event            text NOT NULL,
    failures         bigint NOT NULL,
    since            timestamptz NOT NULL,
    PRIMARY KEY (subscription_uid, event)
);
CREATE TABLE contact_mails (
    subscription_uid uuid PRIMARY KEY REFERENCES subscriptions,
    mailed_at        timestamptz NOT NULL
);

-- +goose Down
LOCK TABLE emails, partners IN ACCESS EXCLUSIVE MODE;
DROP TABLE contact_mails, untold_failures;
ALTER TABLE partners DROP COLUMN contact;
DELETE FROM email_attempts
 WHERE email_uid IN (SELECT email_uid FROM emails WHERE kind = 'deliveries_failed');
DELETE FROM emails WHERE kind = 'deliveries_failed';
ALTER TABLE emails
    DROP CONSTRAINT emails_kind_check,
    ADD CONSTRAINT emails_kind_check CHECK (kind IN ('welcome', 'stipulation', 'task',
        'subscription_failing', 'subscription_recovered', 'attempts_used_up'));
