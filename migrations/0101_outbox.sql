-- +goose Up
-- What waits to follow from an event that is recorded: a place in the feed, and a delivery to each
-- subscription that it is owed to. It has the order of feed_outbox, into which the release before
-- goes on to write: in it, those of one application are as they were recorded.
CREATE TABLE outbox (
    outbox_id       bigint PRIMARY KEY DEFAULT nextval('feed_outbox_outbox_id_seq'),
    event_uid       uuid NOT NULL,
    occurred_at     timestamptz NOT NULL,
    recorded_at     timestamptz NOT NULL,
    kind            text NOT NULL,
    status          text NOT NULL,
    merchant_uid    uuid NOT NULL,
    application_uid uuid NOT NULL,
    -- The subscriptions that get the event, and the delivery to each: it has its identifier from the
    -- first, so that partners know it again whatever a fail-over or a restore makes anew.
    owed            uuid[] NOT NULL,
    delivery_uids   uuid[] NOT NULL CHECK (cardinality(delivery_uids) = cardinality(owed))
);

-- The newest position is that of the feed itself, or one that was left behind. A row that had to
-- be changed with each publication would be found the slower, the longer somebody's transaction
-- keeps its old versions. Whoever wants to publish locks the row, as the release before does.
ALTER TABLE feed_head RENAME TO feed_floor;
CREATE VIEW feed_head AS
SELECT only_row,
       greatest(position, removed, (SELECT max(position) FROM feed)) AS position,
       numbered_until,
       removed
  FROM feed_floor;

-- +goose StatementBegin
CREATE FUNCTION drawbridge_move_feed_head() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE feed_floor
       SET position = NEW.position,
           numbered_until = NEW.numbered_until,
           removed = NEW.removed;
    RETURN NEW;
END
$$;
-- +goose StatementEnd
CREATE TRIGGER feed_head_move INSTEAD OF UPDATE ON feed_head FOR EACH ROW
    EXECUTE FUNCTION drawbridge_move_feed_head();

-- +goose Down
-- What waits still follows as the release before would have had it.
WITH waiting AS (
    SELECT o.*, s.subscription_uid, s.delivery_uid
      FROM outbox o
     CROSS JOIN unnest(o.owed, o.delivery_uids) AS s (subscription_uid, delivery_uid)
), placed AS (
    INSERT INTO feed_outbox (event_uid, occurred_at, merchant_uid, application_uid, kind)
    SELECT event_uid, occurred_at, merchant_uid, application_uid, kind FROM outbox ORDER BY outbox_id
), delivery AS (
    INSERT INTO deliveries (delivery_uid, created_at, subscription_uid, event_uid, event_at, event,
                            application_uid, status, state, next_attempt_at, queued)
    SELECT delivery_uid, recorded_at, subscription_uid, event_uid, occurred_at, kind,
           application_uid, status, 'pending', recorded_at, false
      FROM waiting
)
SELECT 1;
DROP VIEW feed_head;
DROP FUNCTION drawbridge_move_feed_head;
UPDATE feed_floor
   SET position = greatest(position, removed, (SELECT max(position) FROM feed));
ALTER TABLE feed_floor RENAME TO feed_head;
DROP TABLE outbox;
