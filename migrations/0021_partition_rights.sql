-- +goose Up
-- The service may run as a role that owns nothing. Partitions are the one thing that it makes, so
-- these functions work with their owner's rights, whatever the caller's search path is.
-- +goose StatementBegin
DO $$
DECLARE
    made regprocedure;
BEGIN
    FOREACH made IN ARRAY ARRAY[
        'drawbridge_make_partitions(timestamptz, timestamptz, integer)',
        'drawbridge_make_request_partitions(timestamptz, integer)']::regprocedure[] LOOP
        EXECUTE format('ALTER FUNCTION %s SECURITY DEFINER SET search_path = %I, pg_temp',
            made, current_schema());
    END LOOP;
END
$$;
-- +goose StatementEnd

-- +goose Down
ALTER FUNCTION drawbridge_make_partitions(timestamptz, timestamptz, integer)
    SECURITY INVOKER RESET search_path;
ALTER FUNCTION drawbridge_make_request_partitions(timestamptz, integer)
    SECURITY INVOKER RESET search_path;
