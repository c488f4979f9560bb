-- +goose Up
-- All deliveries of an event are found by the event alone: where statistics are missing, as after a
-- restore, a condition on the subscription led through all that it ever got, at each re-send that
-- arrived.
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION drawbridge_make_good() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    item record;
BEGIN
    PERFORM pg_advisory_xact_lock(
        hashtextextended(NEW.event_uid::text || NEW.subscription_uid::text, 55));
    IF NEW.state = 'delivered' THEN
        IF OLD.state IN ('failed', 'cancelled') THEN
            SELECT bulk_uid, position, subscription_uid, state
              INTO item
              FROM bulk_resend_items
             WHERE new_uid = NEW.delivery_uid
               FOR UPDATE;
            IF item.state IN ('sent', 'failed', 'cancelled') THEN
                UPDATE bulk_resend_items
                   SET state = 'delivered'
                 WHERE bulk_uid = item.bulk_uid
                   AND position = item.position;
                UPDATE bulk_resend_lanes
                   SET sent = sent - (item.state = 'sent')::integer,
                       failed = failed - (item.state = 'failed')::integer,
                       cancelled = cancelled - (item.state = 'cancelled')::integer,
                       delivered = delivered + 1,
                       moved_at = greatest(moved_at, NEW.finished_at)
                 WHERE bulk_uid = item.bulk_uid
                   AND subscription_uid = item.subscription_uid;
            END IF;
        END IF;
        UPDATE deliveries
           SET made_good_by = CASE WHEN delivery_uid <> NEW.delivery_uid THEN NEW.delivery_uid END
         WHERE event_uid = NEW.event_uid
           AND CASE WHEN subscription_uid = NEW.subscription_uid
                    THEN state = 'failed' AND made_good_by IS NULL
                         OR delivery_uid = NEW.delivery_uid AND made_good_by IS NOT NULL
                    ELSE false END;
    ELSE
        UPDATE deliveries
           SET overtaken = true
         WHERE event_uid = NEW.event_uid
           AND CASE WHEN subscription_uid = NEW.subscription_uid AND state = 'pending'
                    THEN resend_of IS NULL
                    ELSE false END
           AND overtaken IS NULL;
        UPDATE deliveries d
           SET made_good_by = arrived.delivery_uid
          FROM (SELECT delivery_uid
                  FROM deliveries
                 WHERE event_uid = NEW.event_uid
                   AND CASE WHEN subscription_uid = NEW.subscription_uid
                            THEN state = 'delivered'
                            ELSE false END
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
DECLARE
    item record;
BEGIN
    PERFORM pg_advisory_xact_lock(
        hashtextextended(NEW.event_uid::text || NEW.subscription_uid::text, 55));
    IF NEW.state = 'delivered' THEN
        IF OLD.state IN ('failed', 'cancelled') THEN
            SELECT bulk_uid, position, subscription_uid, state
              INTO item
              FROM bulk_resend_items
             WHERE new_uid = NEW.delivery_uid
               FOR UPDATE;
            IF item.state IN ('sent', 'failed', 'cancelled') THEN
                UPDATE bulk_resend_items
                   SET state = 'delivered'
                 WHERE bulk_uid = item.bulk_uid
                   AND position = item.position;
                UPDATE bulk_resend_lanes
                   SET sent = sent - (item.state = 'sent')::integer,
                       failed = failed - (item.state = 'failed')::integer,
                       cancelled = cancelled - (item.state = 'cancelled')::integer,
                       delivered = delivered + 1,
                       moved_at = greatest(moved_at, NEW.finished_at)
                 WHERE bulk_uid = item.bulk_uid
                   AND subscription_uid = item.subscription_uid;
            END IF;
        END IF;
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
