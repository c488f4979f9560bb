-- +goose Up
-- What partners asked of the API: one row a request, without bodies, queries or headers. Daily
-- partitions (UTC), because it is kept for days and dropped a day at a time. There is no default
-- partition: one would make detaching a day block. No foreign keys either: the log is written
-- after the request ended, and must hold what it finds.
CREATE TABLE api_requests (
    request_uid     uuid NOT NULL,
    at              timestamptz NOT NULL,
    request_id      text NOT NULL,
    method          text NOT NULL,
    route           text NOT NULL,
    path            text NOT NULL,
    client_id       text,
    authenticated   boolean NOT NULL,
    partner_uid     uuid,
    merchant_uid    uuid,
    application_uid uuid,
    status          integer NOT NULL,
    error_code      text,
    error_fields    text[] NOT NULL DEFAULT '{}',
    idempotency_key text,
    replayed        boolean NOT NULL,
    duration_us     bigint NOT NULL,
    bytes_in        bigint NOT NULL,
    bytes_out       bigint NOT NULL,
    address         text NOT NULL,
    user_agent      text NOT NULL,
    PRIMARY KEY (at, request_uid)
) PARTITION BY RANGE (at);
CREATE INDEX api_requests_id ON api_requests (request_id);
CREATE INDEX api_requests_application ON api_requests (application_uid, at DESC, request_uid DESC)
    WHERE application_uid IS NOT NULL;
CREATE INDEX api_requests_client ON api_requests (client_id, at DESC, request_uid DESC);
CREATE INDEX api_requests_refused ON api_requests (at DESC, request_uid DESC) WHERE status >= 400;

-- Requests by hour, which outlive the log and make a partner's traffic cheap to sum up. The nil
-- merchant stands for none.
CREATE TABLE api_traffic (
    hour         timestamptz NOT NULL,
    client_id    text NOT NULL,
    merchant_uid uuid NOT NULL,
    requests     bigint NOT NULL,
    refused      bigint NOT NULL,
    failed       bigint NOT NULL,
    duration_us  bigint NOT NULL,
    PRIMARY KEY (client_id, hour, merchant_uid)
) WITH (fillfactor = 70);
CREATE INDEX api_traffic_hour ON api_traffic (hour);

-- Makes the daily partitions (UTC) from the day of `at` until `ahead` days after it.
-- +goose StatementBegin
CREATE FUNCTION drawbridge_make_request_partitions(at timestamptz, ahead integer)
RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
    day   timestamp := date_trunc('day', at AT TIME ZONE 'UTC');
    until timestamp := day + make_interval(days => ahead);
    made  integer := 0;
    child text;
BEGIN
    PERFORM pg_advisory_xact_lock(hashtext('drawbridge_make_request_partitions'));
    WHILE day <= until LOOP
        child := 'api_requests' || to_char(day, '"_y"YYYY"m"MM"d"DD');
        IF to_regclass(child) IS NULL THEN
            EXECUTE format('CREATE TABLE %I PARTITION OF api_requests FOR VALUES FROM (%L) TO (%L)',
                child, day AT TIME ZONE 'UTC', (day + interval '1 day') AT TIME ZONE 'UTC');
            made := made + 1;
        END IF;
        day := day + interval '1 day';
    END LOOP;
    RETURN made;
END
$$;
-- +goose StatementEnd
SELECT drawbridge_make_request_partitions(now() - interval '1 day', 4);

-- +goose Down
DROP FUNCTION drawbridge_make_request_partitions;
DROP TABLE api_traffic, api_requests;
