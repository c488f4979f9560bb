-- +goose Up
LOCK TABLE deliveries IN ACCESS EXCLUSIVE MODE;

-- Set while a delivery waits for its first attempt and another one of its event fails: then its
-- arrival makes that one good. Else one that arrives at its first attempt pays for no look.
ALTER TABLE deliveries ADD COLUMN overtaken boolean;

-- The states of which others are marked are those that are left without the lock below, so who
-- holds it waits for nobody who waits for it.
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
CREATE OR REPLACE TRIGGER deliveries_made_good AFTER UPDATE OF state ON deliveries
    FOR EACH ROW WHEN (OLD.state <> NEW.state AND (NEW.state = 'failed'
        OR NEW.state = 'delivered'
           AND (NEW.resend_of IS NOT NULL OR OLD.state <> 'pending' OR NEW.overtaken)))
    EXECUTE FUNCTION drawbridge_make_good();

-- +goose Down
LOCK TABLE deliveries IN ACCESS EXCLUSIVE MODE;
CREATE OR REPLACE TRIGGER deliveries_made_good AFTER UPDATE OF state ON deliveries
    FOR EACH ROW WHEN (OLD.state <> NEW.state AND (NEW.state = 'failed'
        OR NEW.state = 'delivered' AND (NEW.resend_of IS NOT NULL OR OLD.state <> 'pending')))
    EXECUTE FUNCTION drawbridge_make_good();
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
ALTER TABLE deliveries DROP COLUMN overtaken;
