-- +goose Up
-- What was made good before: only a re-send does that. It keeps nobody off the table.
UPDATE deliveries d
   SET made_good_by = arrived.delivery_uid
  FROM (SELECT DISTINCT r.event_uid, r.subscription_uid
          FROM deliveries r
         WHERE r.resend_of IS NOT NULL) AS again
 CROSS JOIN LATERAL (
       SELECT delivery_uid
         FROM deliveries
        WHERE event_uid = again.event_uid
          AND subscription_uid = again.subscription_uid
          AND state = 'delivered'
        ORDER BY finished_at, delivery_uid
        LIMIT 1) AS arrived
 WHERE d.event_uid = again.event_uid
   AND d.subscription_uid = again.subscription_uid
   AND d.state = 'failed';

-- +goose Down
SELECT 1;
