-- +goose Up
-- No row can break the wider rule.
ALTER TABLE emails
    DROP CONSTRAINT emails_kind_check,
    ADD CONSTRAINT emails_kind_check CHECK (kind IN ('welcome', 'stipulation', 'task',
        'subscription_failing', 'subscription_recovered', 'attempts_used_up',
        'deliveries_failed', 'draws_overdue', 'applications_undecided')) NOT VALID;

-- +goose Down
LOCK TABLE emails, email_attempts IN ACCESS EXCLUSIVE MODE;
DELETE FROM email_attempts
 WHERE email_uid IN (SELECT email_uid
                       FROM emails
                      WHERE kind IN ('draws_overdue', 'applications_undecided'));
DELETE FROM emails WHERE kind IN ('draws_overdue', 'applications_undecided');
ALTER TABLE emails
    DROP CONSTRAINT emails_kind_check,
    ADD CONSTRAINT emails_kind_check CHECK (kind IN ('welcome', 'stipulation', 'task',
        'subscription_failing', 'subscription_recovered', 'attempts_used_up',
        'deliveries_failed'));
