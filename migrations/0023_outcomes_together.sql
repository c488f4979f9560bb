-- +goose Up
-- Attempts are written many at a time; their outcomes are noted by one statement for all of them.
-- +goose StatementBegin
CREATE FUNCTION drawbridge_note_outcomes() RETURNS trigger LANGUAGE plpgsql AS $$
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
DROP TRIGGER attempts_note_outcome ON attempts;
CREATE TRIGGER attempts_note_outcomes AFTER INSERT ON attempts
    REFERENCING NEW TABLE AS made
    FOR EACH STATEMENT EXECUTE FUNCTION drawbridge_note_outcomes();

-- +goose Down
DROP TRIGGER attempts_note_outcomes ON attempts;
DROP FUNCTION drawbridge_note_outcomes;
CREATE TRIGGER attempts_note_outcome AFTER INSERT ON attempts
    FOR EACH ROW EXECUTE FUNCTION drawbridge_note_outcome();
