-- +goose Up
LOCK TABLE applications IN SHARE ROW EXCLUSIVE MODE;
LOCK TABLE events, deliveries, attempts, emails, subscription_versions IN ACCESS EXCLUSIVE MODE;

-- How an attempt travelled. NULL: written by a release that did not keep it, or unknown.
ALTER TABLE attempts
    ADD COLUMN protocol            text,
    ADD COLUMN reused              boolean,
    ADD COLUMN tls_version         text,
    ADD COLUMN certificate_expires timestamptz,
    -- When retention removed the headers and the body; the rest of the row stays.
    ADD COLUMN content_removed_at  timestamptz;

-- passed_over lists the subscriptions of the partner that the event was not scheduled for:
-- [{"s": subscription, "v": its version, "w": "event" | "merchant"}]. Those that are not listed
-- and have no delivery were not in force. NULL: a test event, or written by a release that kept
-- no ledger.
ALTER TABLE events
    ADD COLUMN passed_over     jsonb,
    ADD COLUMN body_removed_at timestamptz;

ALTER TABLE subscription_versions
    ADD COLUMN state  text CHECK (state IN ('active', 'failing', 'paused', 'deleted')),
    ADD COLUMN reason text NOT NULL DEFAULT '',
    -- The health rules in words, empty for those of all subscriptions.
    ADD COLUMN health_rules text;

ALTER TABLE emails ADD COLUMN content_removed_at timestamptz;

-- Retention takes whole months off these tables. A foreign key between two partitioned tables
-- would make that search the referencing table, in every month, under a lock that writers wait
-- for. The rows are tied together by the statements that write them: an event and its deliveries
-- are one statement, an attempt is written by whoever moved its delivery.
ALTER TABLE attempts DROP CONSTRAINT attempts_delivery_uid_delivery_created_at_fkey;
ALTER TABLE deliveries DROP CONSTRAINT deliveries_event_uid_event_at_fkey;

-- Legal holds: nothing of the application is removed while one is in force.
CREATE TABLE application_holds (
    hold_id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    application_uid uuid NOT NULL REFERENCES applications,
    reason          text NOT NULL CHECK (length(reason) BETWEEN 1 AND 500),
    placed_by       text NOT NULL,
    placed_at       timestamptz NOT NULL,
    release_reason  text CHECK (length(release_reason) BETWEEN 1 AND 500),
    released_by     text,
    released_at     timestamptz,
    -- When what the hold had kept beyond its time was removed after the release.
    swept_at        timestamptz,
    CHECK ((released_at IS NULL) = (released_by IS NULL)),
    CHECK ((released_at IS NULL) = (release_reason IS NULL)),
    CHECK (swept_at IS NULL OR released_at IS NOT NULL)
);
CREATE UNIQUE INDEX application_holds_in_force ON application_holds (application_uid)
    WHERE released_at IS NULL;
CREATE INDEX application_holds_application ON application_holds (application_uid, hold_id);
CREATE INDEX application_holds_unswept ON application_holds (hold_id)
    WHERE released_at IS NOT NULL AND swept_at IS NULL;

CREATE TABLE retention_settings (
    only_row          boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    metadata_months   integer NOT NULL DEFAULT 13 CHECK (metadata_months BETWEEN 2 AND 120),
    body_days         integer NOT NULL DEFAULT 90 CHECK (body_days BETWEEN 7 AND 3650),
    email_body_days   integer NOT NULL DEFAULT 90 CHECK (email_body_days BETWEEN 7 AND 3650),
    api_request_days  integer NOT NULL DEFAULT 30 CHECK (api_request_days BETWEEN 7 AND 3650),
    updated_at        timestamptz,
    updated_by        text,
    CHECK ((updated_at IS NULL) = (updated_by IS NULL))
);
INSERT INTO retention_settings DEFAULT VALUES;

-- How far the removal of bodies has come, so that it never looks at the same rows again.
CREATE TABLE retention_progress (
    matter     text PRIMARY KEY,
    done_until timestamptz NOT NULL
);

-- Events whose body had to stay when its time was over, because a delivery was still open.
CREATE TABLE retention_leftovers (
    event_uid   uuid NOT NULL,
    occurred_at timestamptz NOT NULL,
    PRIMARY KEY (event_uid, occurred_at)
);

-- +goose Down
DROP TABLE retention_leftovers, retention_progress, retention_settings, application_holds;
ALTER TABLE deliveries ADD CONSTRAINT deliveries_event_uid_event_at_fkey
    FOREIGN KEY (event_uid, event_at) REFERENCES events (event_uid, occurred_at);
ALTER TABLE attempts ADD CONSTRAINT attempts_delivery_uid_delivery_created_at_fkey
    FOREIGN KEY (delivery_uid, delivery_created_at)
    REFERENCES deliveries (delivery_uid, created_at);
ALTER TABLE emails DROP COLUMN content_removed_at;
ALTER TABLE subscription_versions DROP COLUMN state, DROP COLUMN reason,
    DROP COLUMN health_rules;
ALTER TABLE events DROP COLUMN passed_over, DROP COLUMN body_removed_at;
ALTER TABLE attempts DROP COLUMN protocol, DROP COLUMN reused, DROP COLUMN tls_version,
    DROP COLUMN certificate_expires, DROP COLUMN content_removed_at;
