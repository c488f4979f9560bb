-- +goose Up
-- Of the deliveries of an event those that wait are found by the event alone: beside an open
-- transaction the index of those that wait holds all that ever did.
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION drawbridge_make_good() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_advisory_xact_lock(
        hashtextextended(NEW.event_uid::text || NEW.subscription_uid::text, 55));
    IF NEW.state = 'delivered' THEN
        UPDATE deliveries
           SET made_good_by = CASE WHEN delivery_uid <> NEW.delivery_uid THEN NEW.delivery_uid END
         WHERE event_uid = NEW.event_uid
           AND subscription_uid = NEW.subscription_uid
           AND (state = 'failed' AND made_good_by IS NULL
                OR delivery_uid = NEW.delivery_uid AND made_good_by IS NOT NULL);
    ELSE
        UPDATE deliveries
           SET overtaken = true
         WHERE event_uid = NEW.event_uid
           AND subscription_uid = NEW.subscription_uid
           AND CASE WHEN state = 'pending' THEN resend_of IS NULL ELSE false END
           AND overtaken IS NULL;
        UPDATE deliveries d
           SET made_good_by = arrived.delivery_uid
          FROM (SELECT delivery_uid
                  FROM deliveries
                 WHERE event_uid = NEW.event_uid
                   AND subscription_uid = NEW.subscription_uid
                   AND state = 'delivered'
                 ORDER BY finished_at, delivery_uid
                 LIMIT 1) AS arrived
         WHERE d.delivery_uid = NEW.delivery_uid
           AND d.created_at = NEW.created_at;
    END IF;
    RETURN NULL;
END
$$;
-- +goose StatementEnd

-- +goose Down
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION drawbridge_make_good() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_advisory_xact_lock(
        hashtextextended(NEW.event_uid::text || NEW.subscription_uid::text, 55));
    IF NEW.state = 'delivered' THEN
        UPDATE deliveries
           SET made_good_by = CASE WHEN delivery_uid <> NEW.delivery_uid THEN NEW.delivery_uid END
         WHERE event_uid = NEW.event_uid
           AND subscription_uid = NEW.subscription_uid
           AND (state = 'failed' AND made_good_by IS NULL
                OR delivery_uid = NEW.delivery_uid AND made_good_by IS NOT NULL);
    ELSE
        UPDATE deliveries
           SET overtaken = true
         WHERE event_uid = NEW.event_uid
           AND subscription_uid = NEW.subscription_uid
           AND state = 'pending'
           AND resend_of IS NULL
           AND overtaken IS NULL;
        UPDATE deliveries d
           SET made_good_by = arrived.delivery_uid
          FROM (SELECT delivery_uid
                  FROM deliveries
                 WHERE event_uid = NEW.event_uid
                   AND subscription_uid = NEW.subscription_uid
                   AND state = 'delivered'
                 ORDER BY finished_at, delivery_uid
                 LIMIT 1) AS arrived
         WHERE d.delivery_uid = NEW.delivery_uid
           AND d.created_at = NEW.created_at;
    END IF;
    RETURN NULL;
END
$$;
-- +goose StatementEnd
