-- +goose Up
LOCK TABLE deliveries, river_job, subscriptions, subscription_versions IN ACCESS EXCLUSIVE MODE;

-- How many requests a second a subscription gets at most; NULL is no limit.
ALTER TABLE subscriptions ADD COLUMN rate integer CHECK (rate BETWEEN 1 AND 1000);
ALTER TABLE subscription_versions ADD COLUMN rate integer;

-- When the next request to a subscription with a rate may start that nobody has booked yet.
-- All processes book their slots here.
CREATE TABLE subscription_slots (
    subscription_uid uuid PRIMARY KEY REFERENCES subscriptions,
    next_at          timestamptz NOT NULL
) WITH (fillfactor = 50);

-- The slot that the next attempt has booked.
ALTER TABLE deliveries ADD COLUMN slot_at timestamptz;

-- The queue offers to look jobs up by what is in them. Nothing does, and each change of each
-- job paid for it twice.
DROP INDEX IF EXISTS river_job_args_index;
DROP INDEX IF EXISTS river_job_metadata_index;

-- +goose Down
CREATE INDEX IF NOT EXISTS river_job_args_index ON river_job USING gin (args);
CREATE INDEX IF NOT EXISTS river_job_metadata_index ON river_job USING gin (metadata);
ALTER TABLE deliveries DROP COLUMN slot_at;
DROP TABLE subscription_slots;
ALTER TABLE subscription_versions DROP COLUMN rate;
ALTER TABLE subscriptions DROP COLUMN rate;
