-- +goose Up
-- What sandboxes do to deliveries on purpose, in the order asked for. Production has no code that
-- writes here.
CREATE TABLE sandbox_faults (
    fault_number     bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    fault_uid        uuid NOT NULL UNIQUE,
    subscription_uid uuid NOT NULL REFERENCES subscriptions,
    fault            text NOT NULL CHECK (fault IN ('duplicate', 'reorder', 'delay',
                         'bad_signature', 'truncate')),
    count            integer NOT NULL CHECK (count BETWEEN 1 AND 100),
    remaining        integer NOT NULL CHECK (remaining BETWEEN 0 AND count),
    delay_seconds    integer CHECK (delay_seconds BETWEEN 1 AND 3600),
    created_at       timestamptz NOT NULL,
    expires_at       timestamptz NOT NULL,
    CHECK ((fault = 'delay') = (delay_seconds IS NOT NULL))
);
CREATE INDEX sandbox_faults_pending ON sandbox_faults (subscription_uid, fault_number)
    WHERE remaining > 0;

-- Which delivery has which fault on its first attempt. Not before `until` does that begin.
CREATE TABLE sandbox_fault_uses (
    delivery_uid     uuid PRIMARY KEY,
    created_at       timestamptz NOT NULL,
    subscription_uid uuid NOT NULL,
    fault            text NOT NULL,
    until            timestamptz
);
CREATE INDEX sandbox_fault_uses_waiting ON sandbox_fault_uses (subscription_uid, until)
    WHERE fault = 'reorder';

-- A failure by a fault counts in no statistics, so that none makes a subscription failing.
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION drawbridge_note_outcomes() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO attempt_outcomes (subscription_uid, delivery_uid, ended_at, http_status, error_class,
                                  error, duration_us, attempts, delivered, failed)
    SELECT d.subscription_uid,
           a.delivery_uid,
           a.started_at + a.duration_us * interval '1 microsecond',
           a.http_status,
           a.error_class,
           a.error,
           a.duration_us,
           1,
           (d.state = 'delivered' AND a.error_class IS NULL AND shown)::integer,
           (d.state = 'failed' AND a.error_class IS NOT NULL AND shown)::integer
      FROM made a
     CROSS JOIN LATERAL (
               SELECT subscription_uid, test, state,
                      last_duration_us IS NOT DISTINCT FROM a.duration_us
                      AND last_http_status IS NOT DISTINCT FROM a.http_status AS shown
                 FROM deliveries
                WHERE delivery_uid = a.delivery_uid
                  AND created_at = a.delivery_created_at
                LIMIT 1) AS d
     WHERE NOT d.test
       AND CASE WHEN a.number = 1 AND a.error_class IS NOT NULL
                THEN NOT EXISTS (SELECT FROM sandbox_fault_uses u
                                  WHERE u.delivery_uid = a.delivery_uid)
                ELSE true END;
    RETURN NULL;
END
$$;
-- +goose StatementEnd

-- +goose Down
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION drawbridge_note_outcomes() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO attempt_outcomes (subscription_uid, delivery_uid, ended_at, http_status, error_class,
                                  error, duration_us, attempts, delivered, failed)
    SELECT d.subscription_uid,
           a.delivery_uid,
           a.started_at + a.duration_us * interval '1 microsecond',
           a.http_status,
           a.error_class,
           a.error,
           a.duration_us,
           1,
           (d.state = 'delivered' AND a.error_class IS NULL AND shown)::integer,
           (d.state = 'failed' AND a.error_class IS NOT NULL AND shown)::integer
      FROM made a
     CROSS JOIN LATERAL (
               SELECT subscription_uid, test, state,
                      last_duration_us IS NOT DISTINCT FROM a.duration_us
                      AND last_http_status IS NOT DISTINCT FROM a.http_status AS shown
                 FROM deliveries
                WHERE delivery_uid = a.delivery_uid
                  AND created_at = a.delivery_created_at
                LIMIT 1) AS d
     WHERE NOT d.test;
    RETURN NULL;
END
$$;
-- +goose StatementEnd
DROP TABLE sandbox_fault_uses, sandbox_faults;
