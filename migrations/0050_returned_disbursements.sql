-- +goose NO TRANSACTION
-- +goose Up
-- The evidence of each step of a disbursement's money, never changed afterwards. A step without a
-- row was made by a release that kept none.
CREATE TABLE IF NOT EXISTS disbursement_changes (
    change_id      bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    merchant_disbursement_id bigint NOT NULL REFERENCES disbursements,
    status         text NOT NULL CHECK (status IN ('FUNDING_PROCESSING', 'FUNDING_SETTLED',
                       'CANCELLED', 'RETURNED')),
    reference      text CHECK (length(reference) BETWEEN 1 AND 100),
    method         text CHECK (method IN ('ach', 'rtp', 'wire', 'check', 'card')),
    effective_date date,
    reason         text CHECK (length(reason) BETWEEN 1 AND 500),
    changed_at     timestamptz NOT NULL,
    changed_by     text NOT NULL,
    UNIQUE (merchant_disbursement_id, status)
);
CREATE INDEX IF NOT EXISTS disbursement_changes_reference ON disbursement_changes (reference)
    WHERE reference IS NOT NULL;
CREATE OR REPLACE TRIGGER disbursement_changes_append_only
    BEFORE UPDATE OR DELETE OR TRUNCATE ON disbursement_changes
    FOR EACH STATEMENT EXECUTE FUNCTION drawbridge_refuse_change();

ALTER TABLE disbursements
    ADD COLUMN IF NOT EXISTS returned_at timestamptz,
    DROP CONSTRAINT IF EXISTS disbursements_status_known,
    ADD CONSTRAINT disbursements_status_known CHECK (status IN ('FUNDING_REQUESTED',
        'FUNDING_PROCESSING', 'FUNDING_SETTLED', 'CANCELLED', 'RETURNED')) NOT VALID,
    DROP CONSTRAINT IF EXISTS disbursements_status_check;
ALTER TABLE subscriptions
    DROP CONSTRAINT IF EXISTS subscriptions_events_known,
    ADD CONSTRAINT subscriptions_events_known CHECK (events <@ ARRAY['all',
        'application.status.update', 'application.amount.update', 'application.offer.update',
        'document.sent', 'document.signed', 'disbursement.funding.status-changed',
        'disbursement.funding.settled', 'disbursement.funding.cancelled',
        'disbursement.funding.returned', 'task.created', 'task.updated']
        AND (NOT events && ARRAY['all'] OR events <@ ARRAY['all', 'disbursement.funding.cancelled',
            'disbursement.funding.returned'])) NOT VALID,
    DROP CONSTRAINT IF EXISTS subscriptions_events_check1;
ALTER TABLE disbursements VALIDATE CONSTRAINT disbursements_status_known;
ALTER TABLE subscriptions VALIDATE CONSTRAINT subscriptions_events_known;

-- Built beside writers; an index that was interrupted is there, but not valid.
SET lock_timeout = 0;
DROP INDEX CONCURRENTLY IF EXISTS disbursements_one_in_force;
CREATE UNIQUE INDEX CONCURRENTLY disbursements_one_in_force
    ON disbursements (application_uid, stage) WHERE status NOT IN ('CANCELLED', 'RETURNED');
DROP INDEX CONCURRENTLY IF EXISTS disbursements_returned;
CREATE INDEX CONCURRENTLY disbursements_returned
    ON disbursements (application_uid) WHERE status = 'RETURNED';
DROP INDEX CONCURRENTLY IF EXISTS disbursements_one_per_stage;

-- +goose Down
-- What was returned counts as cancelled; a subscription to nothing but the two kinds gets the nearest.
UPDATE disbursements
   SET status = 'CANCELLED', cancelled_at = coalesce(cancelled_at, returned_at)
 WHERE status = 'RETURNED';
UPDATE subscriptions
   SET events = CASE
                    WHEN events && ARRAY['all'] THEN ARRAY['all']
                    WHEN events <@ ARRAY['disbursement.funding.cancelled',
                             'disbursement.funding.returned']
                        THEN ARRAY['disbursement.funding.settled']
                    ELSE array_remove(array_remove(events, 'disbursement.funding.cancelled'),
                             'disbursement.funding.returned')
                END
 WHERE events && ARRAY['disbursement.funding.cancelled', 'disbursement.funding.returned'];
DROP INDEX IF EXISTS disbursements_one_per_stage;
CREATE UNIQUE INDEX disbursements_one_per_stage ON disbursements (application_uid, stage)
    WHERE status <> 'CANCELLED';
DROP INDEX IF EXISTS disbursements_returned, disbursements_one_in_force;
ALTER TABLE subscriptions
    DROP CONSTRAINT IF EXISTS subscriptions_events_check1,
    ADD CONSTRAINT subscriptions_events_check1 CHECK (events = ARRAY['all'] OR events <@ ARRAY[
        'application.status.update', 'application.amount.update', 'application.offer.update',
        'document.sent', 'document.signed', 'disbursement.funding.status-changed',
        'disbursement.funding.settled', 'task.created', 'task.updated']),
    DROP CONSTRAINT IF EXISTS subscriptions_events_known;
ALTER TABLE disbursements
    DROP CONSTRAINT IF EXISTS disbursements_status_check,
    ADD CONSTRAINT disbursements_status_check CHECK (status IN ('FUNDING_REQUESTED',
        'FUNDING_PROCESSING', 'FUNDING_SETTLED', 'CANCELLED')),
    DROP CONSTRAINT IF EXISTS disbursements_status_known,
    DROP COLUMN IF EXISTS returned_at;
DROP TABLE IF EXISTS disbursement_changes;
