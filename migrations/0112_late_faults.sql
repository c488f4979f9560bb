-- +goose Up
-- The unknown outcome of an attempt with a fault was not counted, so one that comes late takes nothing
-- back, and a failure counts as little.
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION drawbridge_note_outcome() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    delivery record;
    ended    boolean;
    third    timestamptz;
    faulty   boolean;
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
    faulty := NEW.number = 1 AND EXISTS (SELECT FROM sandbox_fault_uses u
                                          WHERE u.delivery_uid = NEW.delivery_uid);
    IF TG_OP = 'UPDATE' THEN
        IF NOT faulty THEN
            INSERT INTO attempt_outcomes (subscription_uid, delivery_uid, ended_at, http_status,
                                          error_class, duration_us, attempts)
            VALUES (delivery.subscription_uid, NEW.delivery_uid,
                    OLD.started_at + OLD.duration_us * interval '1 microsecond',
                    OLD.http_status, OLD.error_class, OLD.duration_us, -1);
        END IF;
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
    IF faulty AND NEW.error_class IS NOT NULL THEN
        RETURN NULL;
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

-- +goose Down
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION drawbridge_note_outcome() RETURNS trigger LANGUAGE plpgsql AS $$
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
