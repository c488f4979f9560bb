-- +goose Up
-- Reads all e-mails, beside those who write them.
ALTER TABLE emails
    VALIDATE CONSTRAINT emails_waits_for_check,
    VALIDATE CONSTRAINT emails_refusals_check;
ALTER TABLE email_attempts VALIDATE CONSTRAINT email_attempts_outcome_check;
-- Which kinds there are stands in internal/attention alone: a list here too would have to be
-- replaced with each new kind.
ALTER TABLE attention_items
    DROP CONSTRAINT attention_items_kind_check,
    ADD CONSTRAINT attention_items_kind_check CHECK (kind ~ '^[a-z_]{1,40}$');

-- +goose Down
DELETE FROM attention_items WHERE kind = 'mail_refused';
ALTER TABLE attention_items
    DROP CONSTRAINT attention_items_kind_check,
    ADD CONSTRAINT attention_items_kind_check CHECK (kind IN ('delivery_used_up', 'outcome_unknown',
        'subscription_failing', 'certificate_expiring', 'probe_failed', 'delivery_overdue',
        'never_succeeded', 'mail_failed', 'subscription_unopened'));
