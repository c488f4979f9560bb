-- +goose Up
CREATE TABLE subscriptions (
    subscription_uid  uuid PRIMARY KEY,
    partner_uid       uuid NOT NULL REFERENCES partners,
    url               text NOT NULL CHECK (length(url) <= 2048),
    auth              text NOT NULL CHECK (auth IN ('none', 'hmac', 'bearer')),
    secret_sealed     text,
    previous_sealed   text,
    previous_until    timestamptz,
    headers_sealed    text,
    events            text[] NOT NULL CHECK (cardinality(events) >= 1),
    all_merchants     boolean NOT NULL,
    state             text NOT NULL CHECK (state IN ('active', 'failing', 'paused', 'deleted')),
    version           integer NOT NULL DEFAULT 1 CHECK (version >= 1),
    created_at        timestamptz NOT NULL,
    updated_at        timestamptz NOT NULL,
    UNIQUE (subscription_uid, partner_uid),
    CHECK ((auth = 'none') = (secret_sealed IS NULL)),
    CHECK ((previous_sealed IS NULL) = (previous_until IS NULL)),
    CHECK (events = ARRAY['all'] OR events <@ ARRAY['application.status.update',
        'application.amount.update', 'application.offer.update', 'document.sent', 'document.signed',
        'disbursement.funding.status-changed', 'disbursement.funding.settled', 'task.created',
        'task.updated'])
);
CREATE INDEX subscriptions_partner ON subscriptions (partner_uid) WHERE state <> 'deleted';
CREATE INDEX subscriptions_created ON subscriptions (created_at DESC, subscription_uid DESC);

CREATE TABLE subscription_merchants (
    subscription_uid uuid NOT NULL,
    merchant_uid     uuid NOT NULL,
    partner_uid      uuid NOT NULL,
    PRIMARY KEY (subscription_uid, merchant_uid),
    FOREIGN KEY (subscription_uid, partner_uid) REFERENCES subscriptions (subscription_uid, partner_uid),
    FOREIGN KEY (merchant_uid, partner_uid) REFERENCES merchants (merchant_uid, partner_uid)
);

-- One row for each state of the configuration that ever was in force; attempts name theirs.
CREATE TABLE subscription_versions (
    subscription_uid uuid NOT NULL REFERENCES subscriptions,
    version          integer NOT NULL,
    url              text NOT NULL,
    auth             text NOT NULL,
    headers_sealed   text,
    events           text[] NOT NULL,
    merchant_uids    uuid[] NOT NULL,
    change           text NOT NULL,
    changed_by       text NOT NULL,
    changed_at       timestamptz NOT NULL,
    PRIMARY KEY (subscription_uid, version)
);

-- Test events belong to no application; their payload names the nil one.
CREATE TABLE events (
    event_uid       uuid NOT NULL,
    occurred_at     timestamptz NOT NULL,
    kind            text NOT NULL,
    partner_uid     uuid NOT NULL REFERENCES partners,
    merchant_uid    uuid REFERENCES merchants,
    application_uid uuid REFERENCES applications,
    status          text NOT NULL,
    body            bytea NOT NULL,
    PRIMARY KEY (event_uid, occurred_at),
    UNIQUE (application_uid, status, occurred_at)
) PARTITION BY RANGE (occurred_at);
CREATE INDEX events_occurred ON events (occurred_at DESC, event_uid DESC);

CREATE TABLE deliveries (
    delivery_uid     uuid NOT NULL,
    created_at       timestamptz NOT NULL,
    subscription_uid uuid NOT NULL REFERENCES subscriptions,
    event_uid        uuid NOT NULL,
    event_at         timestamptz NOT NULL,
    event            text NOT NULL,
    application_uid  uuid,
    status           text NOT NULL,
    test             boolean NOT NULL DEFAULT false,
    state            text NOT NULL CHECK (state IN ('pending', 'delivered', 'retrying', 'failed', 'cancelled')),
    attempt_count    integer NOT NULL DEFAULT 0 CHECK (attempt_count BETWEEN 0 AND 3),
    next_attempt_at  timestamptz,
    -- Who starts the next attempt: a job in the queue (queued), the resumption of the
    -- subscription (parked), the end of another attempt at a busy endpoint (held), else the
    -- promoter once next_attempt_at has come.
    queued           boolean NOT NULL,
    parked           boolean NOT NULL DEFAULT false,
    held             boolean NOT NULL DEFAULT false,
    last_http_status integer,
    last_error_class text,
    last_duration_us bigint,
    finished_at      timestamptz,
    resend_of        uuid,
    resent_by        text,
    resend_reason    text,
    PRIMARY KEY (delivery_uid, created_at),
    FOREIGN KEY (event_uid, event_at) REFERENCES events (event_uid, occurred_at),
    CHECK ((next_attempt_at IS NULL) = (state NOT IN ('pending', 'retrying'))),
    CHECK (queued::integer + parked::integer + held::integer <= 1),
    CHECK ((resend_of IS NULL) = (resent_by IS NULL))
) PARTITION BY RANGE (created_at);
CREATE INDEX deliveries_created ON deliveries (created_at DESC, delivery_uid DESC);
CREATE INDEX deliveries_subscription ON deliveries (subscription_uid, created_at DESC, delivery_uid DESC);
CREATE INDEX deliveries_state ON deliveries (state, created_at DESC, delivery_uid DESC) WHERE state <> 'delivered';
CREATE INDEX deliveries_application ON deliveries (application_uid, created_at DESC, delivery_uid DESC);
CREATE INDEX deliveries_event ON deliveries (event, created_at DESC, delivery_uid DESC);
CREATE INDEX deliveries_of_event ON deliveries (event_uid);
CREATE INDEX deliveries_resends ON deliveries (resend_of) WHERE resend_of IS NOT NULL;
CREATE INDEX deliveries_open ON deliveries (subscription_uid) WHERE state IN ('pending', 'retrying');
CREATE INDEX deliveries_queued ON deliveries (next_attempt_at) WHERE queued;
CREATE INDEX deliveries_due ON deliveries (next_attempt_at)
    WHERE state IN ('pending', 'retrying') AND NOT queued AND NOT parked AND NOT held;
CREATE INDEX deliveries_held ON deliveries (subscription_uid, next_attempt_at) WHERE held;

CREATE TABLE attempts (
    delivery_uid       uuid NOT NULL,
    delivery_created_at timestamptz NOT NULL,
    number             integer NOT NULL CHECK (number BETWEEN 1 AND 3),
    started_at         timestamptz NOT NULL,
    subscription_version integer,
    url                text,
    http_status        integer,
    error_class        text CHECK (error_class IN ('dns', 'connect', 'tls', 'timeout', 'blocked_address',
                           'http_3xx', 'http_4xx', 'http_5xx', 'protocol', 'unknown')),
    error              text,
    note               text,
    address            text,
    dns_us             bigint,
    connect_us         bigint,
    tls_us             bigint,
    first_byte_us      bigint,
    duration_us        bigint NOT NULL CHECK (duration_us >= 0),
    request_headers    jsonb NOT NULL,
    response_headers   jsonb NOT NULL,
    response_body      bytea,
    PRIMARY KEY (delivery_uid, delivery_created_at, number),
    FOREIGN KEY (delivery_uid, delivery_created_at) REFERENCES deliveries (delivery_uid, created_at)
) PARTITION BY RANGE (delivery_created_at);

-- Makes the monthly partitions (UTC) that cover the months from `since` until `ahead` months
-- after `at`. There is no default partition: one would make detaching old months block.
-- +goose StatementBegin
CREATE FUNCTION drawbridge_make_partitions(since timestamptz, at timestamptz, ahead integer)
RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
    parent text;
    month  timestamp := date_trunc('month', since AT TIME ZONE 'UTC');
    made   integer := 0;
    child  text;
BEGIN
    PERFORM pg_advisory_xact_lock(hashtext('drawbridge_make_partitions'));
    WHILE month <= date_trunc('month', at AT TIME ZONE 'UTC') + make_interval(months => ahead) LOOP
        FOREACH parent IN ARRAY ARRAY['events', 'deliveries', 'attempts'] LOOP
            child := parent || to_char(month, '"_y"YYYY"m"MM');
            IF to_regclass(child) IS NULL THEN
                EXECUTE format('CREATE TABLE %I PARTITION OF %I FOR VALUES FROM (%L) TO (%L)',
                    child, parent, month AT TIME ZONE 'UTC',
                    (month + interval '1 month') AT TIME ZONE 'UTC');
                made := made + 1;
            END IF;
        END LOOP;
        month := month + interval '1 month';
    END LOOP;
    RETURN made;
END
$$;
-- +goose StatementEnd
SELECT drawbridge_make_partitions(now() - interval '1 month', now(), 3);

-- +goose Down
DROP FUNCTION drawbridge_make_partitions;
DROP TABLE attempts, deliveries, events, subscription_versions, subscription_merchants, subscriptions;
