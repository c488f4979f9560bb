-- +goose Up
ALTER TABLE attention_items
    DROP CONSTRAINT attention_items_kind_check,
    ADD CONSTRAINT attention_items_kind_check CHECK (kind IN ('delivery_used_up', 'outcome_unknown',
        'subscription_failing', 'certificate_expiring', 'probe_failed', 'delivery_overdue',
        'never_succeeded', 'mail_failed', 'subscription_unopened'));

-- +goose Down
DELETE FROM attention_items WHERE kind = 'subscription_unopened';
ALTER TABLE attention_items
    DROP CONSTRAINT attention_items_kind_check,
    ADD CONSTRAINT attention_items_kind_check CHECK (kind IN ('delivery_used_up', 'outcome_unknown',
        'subscription_failing', 'certificate_expiring', 'probe_failed', 'delivery_overdue',
        'never_succeeded', 'mail_failed'));
