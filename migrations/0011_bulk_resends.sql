-- +goose Up
LOCK TABLE subscriptions, partners IN SHARE ROW EXCLUSIVE MODE;

-- A bulk re-send: what it was made of, who decided it and how far it has come.
CREATE TABLE bulk_resends (
    bulk_uid       uuid PRIMARY KEY,
    partner_uid    uuid NOT NULL REFERENCES partners,
    kind           text NOT NULL CHECK (kind IN ('selection', 'filter', 'recover', 'replay')),
    -- The choice as it was made; the items are what it meant when it was confirmed.
    scope          jsonb NOT NULL,
    skip_newer     boolean NOT NULL DEFAULT false,
    skip_delivered boolean NOT NULL DEFAULT false,
    -- Deliveries a second to one subscription.
    pace           integer NOT NULL CHECK (pace BETWEEN 1 AND 500),
    state          text NOT NULL CHECK (state IN ('draft', 'running', 'paused', 'cancelled', 'finished')),
    -- Counts the starts; a job of an earlier one has nothing to do any more.
    run            integer NOT NULL DEFAULT 0,
    reason         text,
    created_by     text NOT NULL,
    created_at     timestamptz NOT NULL,
    confirmed_by   text,
    confirmed_at   timestamptz,
    -- When the new deliveries were last asked for how they ended.
    settled_at     timestamptz,
    ended_at       timestamptz,
    UNIQUE (bulk_uid, partner_uid),
    CHECK ((state = 'draft') = (confirmed_at IS NULL)),
    CHECK ((confirmed_at IS NULL) = (confirmed_by IS NULL)),
    CHECK ((confirmed_at IS NULL) = (reason IS NULL)),
    CHECK ((ended_at IS NULL) = (state NOT IN ('cancelled', 'finished')))
);
CREATE INDEX bulk_resends_created ON bulk_resends (created_at DESC, bulk_uid DESC);
CREATE INDEX bulk_resends_partner ON bulk_resends (partner_uid, created_at DESC, bulk_uid DESC);

-- One row for each subscription of a bulk re-send: its pace, and how many of its
-- items are in which state. The keys keep out subscriptions of another partner.
CREATE TABLE bulk_resend_lanes (
    bulk_uid         uuid NOT NULL,
    subscription_uid uuid NOT NULL,
    partner_uid      uuid NOT NULL,
    -- Up to when the pace has been used.
    paced_at         timestamptz NOT NULL,
    -- When an item was last sent or ended.
    moved_at         timestamptz NOT NULL,
    waiting          integer NOT NULL DEFAULT 0 CHECK (waiting >= 0),
    sent             integer NOT NULL DEFAULT 0 CHECK (sent >= 0),
    delivered        integer NOT NULL DEFAULT 0 CHECK (delivered >= 0),
    failed           integer NOT NULL DEFAULT 0 CHECK (failed >= 0),
    cancelled        integer NOT NULL DEFAULT 0 CHECK (cancelled >= 0),
    skipped          integer NOT NULL DEFAULT 0 CHECK (skipped >= 0),
    PRIMARY KEY (bulk_uid, subscription_uid),
    FOREIGN KEY (bulk_uid, partner_uid) REFERENCES bulk_resends (bulk_uid, partner_uid),
    FOREIGN KEY (subscription_uid, partner_uid) REFERENCES subscriptions (subscription_uid, partner_uid)
);

-- The exact set, in the order of sending. It outlives the partitions of what it names.
CREATE TABLE bulk_resend_items (
    bulk_uid            uuid NOT NULL,
    position            integer NOT NULL,
    subscription_uid    uuid NOT NULL,
    event_uid           uuid NOT NULL,
    event_at            timestamptz NOT NULL,
    event               text NOT NULL,
    application_uid     uuid,
    status              text NOT NULL,
    test                boolean NOT NULL,
    -- What is sent again; null for an event that the subscription never got.
    delivery_uid        uuid,
    delivery_created_at timestamptz,
    state               text NOT NULL
        CHECK (state IN ('waiting', 'sent', 'delivered', 'failed', 'cancelled', 'skipped')),
    skip_reason         text,
    new_uid             uuid,
    new_created_at      timestamptz,
    PRIMARY KEY (bulk_uid, position),
    FOREIGN KEY (bulk_uid, subscription_uid) REFERENCES bulk_resend_lanes (bulk_uid, subscription_uid),
    CHECK ((delivery_uid IS NULL) = (delivery_created_at IS NULL)),
    CHECK ((new_uid IS NULL) = (new_created_at IS NULL)),
    CHECK (new_uid IS NULL OR state NOT IN ('waiting', 'skipped')),
    CHECK (new_uid IS NOT NULL OR state NOT IN ('sent', 'delivered', 'failed')),
    CHECK ((state = 'skipped') = (skip_reason IS NOT NULL))
);
CREATE INDEX bulk_resend_items_state ON bulk_resend_items (bulk_uid, state, position);
CREATE INDEX bulk_resend_items_waiting ON bulk_resend_items (bulk_uid, subscription_uid, position)
    WHERE state = 'waiting';
CREATE UNIQUE INDEX bulk_resend_items_new ON bulk_resend_items (new_uid) WHERE new_uid IS NOT NULL;

-- +goose Down
DROP TABLE bulk_resend_items, bulk_resend_lanes, bulk_resends;
