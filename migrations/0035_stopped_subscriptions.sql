-- +goose Up
-- Since when nothing is sent because the secret or the headers do not open; their deliveries wait.
ALTER TABLE subscriptions ADD COLUMN stopped_at timestamptz;

-- +goose Down
UPDATE deliveries d
   SET parked = false
  FROM subscriptions s
 WHERE s.subscription_uid = d.subscription_uid
   AND s.stopped_at IS NOT NULL
   AND s.state <> 'paused'
   AND d.state IN ('pending', 'retrying')
   AND d.parked;
ALTER TABLE subscriptions DROP COLUMN stopped_at;
