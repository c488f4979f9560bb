-- +goose Up
LOCK TABLE attempts IN SHARE ROW EXCLUSIVE MODE;
LOCK TABLE subscriptions IN ACCESS EXCLUSIVE MODE;

-- What counts as failing: the settings of all subscriptions, and each one's own.
CREATE TABLE health_settings (
    only_row        boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    failing_minutes integer NOT NULL CHECK (failing_minutes BETWEEN 5 AND 43200),
    failing_events  integer NOT NULL CHECK (failing_events BETWEEN 1 AND 10000),
    updated_at      timestamptz,
    updated_by      text
);
INSERT INTO health_settings (failing_minutes, failing_events) VALUES (1440, 10);

ALTER TABLE subscriptions
    ADD COLUMN failing_minutes integer CHECK (failing_minutes BETWEEN 5 AND 43200),
    ADD COLUMN failing_events  integer CHECK (failing_events BETWEEN 1 AND 10000),
    ADD COLUMN on_failing      text NOT NULL DEFAULT 'continue' CHECK (on_failing IN ('continue', 'pause')),
    ADD COLUMN alert_email     text NOT NULL DEFAULT '' CHECK (length(alert_email) <= 254);

-- Outcomes that are not in the summaries yet. Each is taken out in the transaction that adds it to
-- them, so that it counts exactly once, whenever it comes. A late outcome that replaces an unknown
-- one takes that back with counts of -1.
CREATE TABLE attempt_outcomes (
    outcome_id       bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    subscription_uid uuid NOT NULL,
    delivery_uid     uuid NOT NULL,
    ended_at         timestamptz NOT NULL,
    http_status      integer,
    error_class      text,
    error            text,
    duration_us      bigint NOT NULL,
    attempts         integer NOT NULL,
    delivered        integer NOT NULL DEFAULT 0,
    failed           integer NOT NULL DEFAULT 0
);

-- Notes the outcome of an attempt, whoever writes it. Test events do not count. A delivery's end
-- is noted with the attempt that its row shows.
-- +goose StatementBegin
CREATE FUNCTION drawbridge_note_outcome() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    delivery record;
    ended    boolean;
    third    timestamptz;
BEGIN
    SELECT subscription_uid, test, state, last_http_status, last_duration_us
      INTO delivery
      FROM deliveries
     WHERE delivery_uid = NEW.delivery_uid
       AND created_at = NEW.delivery_created_at;
    IF NOT FOUND OR delivery.test THEN
        RETURN NULL;
    END IF;
    ended := delivery.state = CASE WHEN NEW.error_class IS NULL THEN 'delivered' ELSE 'failed' END
        AND delivery.last_duration_us = NEW.duration_us
        AND delivery.last_http_status IS NOT DISTINCT FROM NEW.http_status;
    IF TG_OP = 'UPDATE' THEN
        INSERT INTO attempt_outcomes (subscription_uid, delivery_uid, ended_at, http_status,
                                      error_class, duration_us, attempts)
        VALUES (delivery.subscription_uid, NEW.delivery_uid,
                OLD.started_at + OLD.duration_us * interval '1 microsecond',
                OLD.http_status, OLD.error_class, OLD.duration_us, -1);
        IF ended AND NEW.error_class IS NULL THEN
            SELECT CASE WHEN NEW.number = 3 THEN OLD.started_at + OLD.duration_us * interval '1 microsecond'
                        ELSE started_at + duration_us * interval '1 microsecond' END
              INTO third
              FROM attempts
             WHERE delivery_uid = NEW.delivery_uid
               AND delivery_created_at = NEW.delivery_created_at
               AND number = 3
               AND (NEW.number = 3 OR error_class IS NOT NULL);
            IF FOUND THEN
                INSERT INTO attempt_outcomes (subscription_uid, delivery_uid, ended_at,
                                              duration_us, attempts, failed)
                VALUES (delivery.subscription_uid, NEW.delivery_uid, third, 0, 0, -1);
            END IF;
        END IF;
    END IF;
    INSERT INTO attempt_outcomes (subscription_uid, delivery_uid, ended_at, http_status, error_class,
                                  error, duration_us, attempts, delivered, failed)
    VALUES (delivery.subscription_uid, NEW.delivery_uid,
            NEW.started_at + NEW.duration_us * interval '1 microsecond', NEW.http_status,
            NEW.error_class, NEW.error, NEW.duration_us, 1,
            (ended AND NEW.error_class IS NULL)::integer,
            (ended AND NEW.error_class IS NOT NULL)::integer);
    RETURN NULL;
END
$$;
-- +goose StatementEnd
CREATE TRIGGER attempts_note_outcome AFTER INSERT ON attempts
    FOR EACH ROW EXECUTE FUNCTION drawbridge_note_outcome();
CREATE TRIGGER attempts_note_late_outcome AFTER UPDATE ON attempts
    FOR EACH ROW WHEN (OLD.error_class = 'unknown' AND NEW.error_class IS DISTINCT FROM 'unknown')
    EXECUTE FUNCTION drawbridge_note_outcome();

-- The sum of two histograms, bucket by bucket.
CREATE FUNCTION drawbridge_add(a integer[], b integer[]) RETURNS integer[]
    LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT array_agg(coalesce(x, 0) + coalesce(y, 0) ORDER BY n)
      FROM unnest(a, b) WITH ORDINALITY AS pairs (x, y, n)
$$;

-- Attempts by the hour in which they ended; latency counts the successful ones by their duration.
CREATE TABLE subscription_hours (
    subscription_uid uuid NOT NULL REFERENCES subscriptions,
    hour             timestamptz NOT NULL,
    attempts         integer NOT NULL,
    succeeded        integer NOT NULL,
    delivered        integer NOT NULL,
    failed           integer NOT NULL,
    latency          integer[] NOT NULL,
    PRIMARY KEY (subscription_uid, hour)
);

CREATE TABLE subscription_errors (
    subscription_uid uuid NOT NULL REFERENCES subscriptions,
    hour             timestamptz NOT NULL,
    error_class      text NOT NULL,
    http_status      integer NOT NULL,
    attempts         integer NOT NULL,
    first_seen       timestamptz NOT NULL,
    last_seen        timestamptz NOT NULL,
    error            text NOT NULL,
    PRIMARY KEY (subscription_uid, hour, error_class, http_status)
);

-- All subscriptions together. Minutes are kept for a few days only.
CREATE TABLE traffic (
    unit      text NOT NULL CHECK (unit IN ('minute', 'hour')),
    start     timestamptz NOT NULL,
    attempts  integer NOT NULL,
    succeeded integer NOT NULL,
    delivered integer NOT NULL,
    failed    integer NOT NULL,
    latency   integer[] NOT NULL,
    PRIMARY KEY (unit, start)
);

-- The streak of failures since the last success, and the one before it.
CREATE TABLE subscription_health (
    subscription_uid uuid PRIMARY KEY REFERENCES subscriptions,
    last_success_at  timestamptz,
    last_failure_at  timestamptz,
    last_http_status integer,
    last_error_class text,
    last_error       text NOT NULL DEFAULT '',
    failing_since    timestamptz,
    failures         integer NOT NULL DEFAULT 0,
    former_since     timestamptz,
    former_failures  integer NOT NULL DEFAULT 0,
    CHECK ((failing_since IS NULL) = (failures = 0))
);
CREATE INDEX subscription_health_failing ON subscription_health (failing_since)
    WHERE failing_since IS NOT NULL;

-- The last look at each endpoint between events.
CREATE TABLE probes (
    subscription_uid    uuid PRIMARY KEY REFERENCES subscriptions,
    next_at             timestamptz NOT NULL,
    url                 text NOT NULL DEFAULT '',
    probed_at           timestamptz,
    error_class         text,
    error               text NOT NULL DEFAULT '',
    address             text NOT NULL DEFAULT '',
    http_status         integer,
    location            text NOT NULL DEFAULT '',
    protocol            text NOT NULL DEFAULT '',
    tls_version         text NOT NULL DEFAULT '',
    certificate_issuer  text NOT NULL DEFAULT '',
    certificate_expires timestamptz,
    dns_us              bigint,
    connect_us          bigint,
    tls_us              bigint,
    first_byte_us       bigint,
    total_us            bigint,
    failures            integer NOT NULL DEFAULT 0
);
CREATE INDEX probes_due ON probes (next_at);

CREATE TABLE probe_changes (
    subscription_uid uuid NOT NULL REFERENCES subscriptions,
    at               timestamptz NOT NULL,
    finding          text NOT NULL,
    PRIMARY KEY (subscription_uid, at)
);

-- What needs a human: one open row for each kind and subject.
CREATE TABLE attention_items (
    item_uid         uuid PRIMARY KEY,
    kind             text NOT NULL CHECK (kind IN ('delivery_used_up', 'outcome_unknown',
                         'subscription_failing', 'certificate_expiring', 'probe_failed',
                         'delivery_overdue', 'never_succeeded', 'mail_failed')),
    subject          text NOT NULL,
    subscription_uid uuid REFERENCES subscriptions,
    severity         text NOT NULL CHECK (severity IN ('warning', 'problem')),
    detail           text NOT NULL,
    count            bigint NOT NULL CHECK (count >= 1),
    opened_at        timestamptz NOT NULL,
    last_seen_at     timestamptz NOT NULL,
    owner            text NOT NULL DEFAULT '',
    snoozed_until    timestamptz,
    closed_at        timestamptz,
    closed_by        text NOT NULL DEFAULT '',
    note             text NOT NULL DEFAULT '',
    CHECK ((closed_at IS NULL) = (closed_by = ''))
);
CREATE UNIQUE INDEX attention_items_open ON attention_items (kind, subject) WHERE closed_at IS NULL;
CREATE INDEX attention_items_listed ON attention_items (opened_at DESC, item_uid DESC);
CREATE INDEX attention_items_waiting ON attention_items (opened_at DESC, item_uid DESC)
    WHERE closed_at IS NULL;
CREATE INDEX attention_items_subscription
    ON attention_items (subscription_uid, opened_at DESC, item_uid DESC);

-- The processes that serve; each refreshes its row and removes it when it stops.
CREATE TABLE processes (
    process_uid  uuid PRIMARY KEY,
    host         text NOT NULL,
    pid          integer NOT NULL,
    roles        text[] NOT NULL,
    version      text NOT NULL,
    started_at   timestamptz NOT NULL,
    last_beat_at timestamptz NOT NULL,
    skew_us      bigint NOT NULL
);

-- +goose Down
DROP TABLE processes, attention_items, probe_changes, probes, subscription_health, traffic,
    subscription_errors, subscription_hours;
DROP TRIGGER attempts_note_late_outcome ON attempts;
DROP TRIGGER attempts_note_outcome ON attempts;
DROP FUNCTION drawbridge_note_outcome;
DROP FUNCTION drawbridge_add;
DROP TABLE attempt_outcomes;
ALTER TABLE subscriptions
    DROP COLUMN failing_minutes,
    DROP COLUMN failing_events,
    DROP COLUMN on_failing,
    DROP COLUMN alert_email;
DROP TABLE health_settings;
