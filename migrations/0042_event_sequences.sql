-- +goose Up
LOCK TABLE applications, events IN ACCESS EXCLUSIVE MODE;

-- The number of the application's newest event, 0 without events. NULL: it may have events from
-- before this migration, which get their numbers beside the running service.
ALTER TABLE applications ADD COLUMN last_sequence bigint;
ALTER TABLE applications ALTER COLUMN last_sequence SET DEFAULT 0;
ALTER TABLE events
    ADD COLUMN sequence  bigint,
    -- The object whose state the event tells, such as disbursement/1042.
    ADD COLUMN subject   text,
    -- The application's external reference.
    ADD COLUMN reference text;

-- Events that have no place in the feed yet, in the order of their recording as far as those of
-- one application go.
CREATE TABLE feed_outbox (
    outbox_id       bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    event_uid       uuid NOT NULL,
    occurred_at     timestamptz NOT NULL,
    merchant_uid    uuid NOT NULL,
    application_uid uuid NOT NULL,
    kind            text NOT NULL
);

-- The feed: a position is given when the event is published, in transactions that follow one
-- another, so that whoever sees a position sees all before it.
CREATE TABLE feed (
    position        bigint PRIMARY KEY,
    event_uid       uuid NOT NULL,
    occurred_at     timestamptz NOT NULL,
    merchant_uid    uuid NOT NULL,
    application_uid uuid NOT NULL,
    kind            text NOT NULL
);
CREATE INDEX feed_merchant ON feed (merchant_uid, position);

-- The newest position, and up to which application older events have their numbers: NULL once
-- all have.
CREATE TABLE feed_head (
    only_row       boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    position       bigint NOT NULL,
    numbered_until uuid
);
INSERT INTO feed_head (position) VALUES (0);
UPDATE feed_head
   SET numbered_until = '00000000-0000-0000-0000-000000000000'
 WHERE EXISTS (SELECT FROM applications);

-- Numbers the events that an application has from before there were numbers, by their times, leads
-- them into the feed, and returns how many events it has. The caller has the application's row
-- locked.
-- +goose StatementBegin
CREATE FUNCTION drawbridge_number_events(application uuid) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    events_of bigint;
BEGIN
    WITH old AS (
        SELECT event_uid, occurred_at, row_number() OVER (ORDER BY occurred_at, event_uid) AS place
          FROM events
         WHERE application_uid = application
           AND sequence IS NULL
    ), numbered AS (
        UPDATE events e
           SET sequence = old.place,
               subject = 'application/' || application,
               reference = (SELECT external_reference FROM applications
                             WHERE application_uid = application)
          FROM old
         WHERE e.event_uid = old.event_uid
           AND e.occurred_at = old.occurred_at
           AND e.sequence IS NULL
        RETURNING e.event_uid, e.occurred_at, e.merchant_uid, e.kind, e.sequence
    )
    INSERT INTO feed_outbox (event_uid, occurred_at, merchant_uid, application_uid, kind)
    SELECT event_uid, occurred_at, merchant_uid, application, kind
      FROM numbered
     ORDER BY sequence;
    SELECT count(*) INTO events_of FROM events WHERE application_uid = application;
    RETURN events_of;
END
$$;

-- A release that knows no numbers may go on beside this one. Its events get theirs here, from the
-- application's row, which its statement has locked.
CREATE FUNCTION drawbridge_number_event() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE applications
       SET last_sequence = 1 + coalesce(last_sequence,
               drawbridge_number_events(NEW.application_uid))
     WHERE application_uid = NEW.application_uid
    RETURNING last_sequence, external_reference INTO NEW.sequence, NEW.reference;
    NEW.subject := 'application/' || NEW.application_uid;
    INSERT INTO feed_outbox (event_uid, occurred_at, merchant_uid, application_uid, kind)
    VALUES (NEW.event_uid, NEW.occurred_at, NEW.merchant_uid, NEW.application_uid, NEW.kind);
    RETURN NEW;
END
$$;
-- +goose StatementEnd
CREATE TRIGGER events_number BEFORE INSERT ON events FOR EACH ROW
    WHEN (NEW.sequence IS NULL AND NEW.application_uid IS NOT NULL)
    EXECUTE FUNCTION drawbridge_number_event();

-- +goose Down
DROP TRIGGER events_number ON events;
DROP FUNCTION drawbridge_number_event, drawbridge_number_events;
DROP TABLE feed_head, feed, feed_outbox;
ALTER TABLE events DROP COLUMN sequence, DROP COLUMN subject, DROP COLUMN reference;
ALTER TABLE applications DROP COLUMN last_sequence;
