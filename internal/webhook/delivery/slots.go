package delivery

import (
	"context"
	"slices"

	"github.com/google/uuid"
	"github.com/jmoiron/sqlx"
)

// bookSlots books a slot for each delivery and postpones those whose slot has not come
// yet. It returns the others.
const bookSlots = `
	WITH wanted AS MATERIALIZED (
		SELECT *,
		       row_number() OVER (PARTITION BY subscription_uid
		                              ORDER BY created_at, delivery_uid) - 1 AS place
		  FROM unnest($1::uuid[], $2::integer[], $3::uuid[], $4::timestamptz[])
		    AS w (subscription_uid, rate, delivery_uid, created_at)
		 LIMIT cardinality($1::uuid[])
	), total AS (
		SELECT subscription_uid, count(*) AS places, max(rate) AS rate
		  FROM wanted
		 GROUP BY subscription_uid
		 ORDER BY subscription_uid
	), booked AS (
		INSERT INTO subscription_slots AS s (subscription_uid, next_at)
		SELECT subscription_uid, $5::timestamptz + places * interval '1 second' / rate
		  FROM total
		ON CONFLICT (subscription_uid) DO UPDATE
		   SET next_at = greatest(s.next_at, $5) + (excluded.next_at - $5)
		RETURNING subscription_uid, next_at
	), placed AS (
		SELECT w.delivery_uid,
		       w.created_at,
		       b.next_at - (t.places - w.place) * interval '1 second' / t.rate AS slot_at
		  FROM wanted w
		  JOIN total t USING (subscription_uid)
		  JOIN booked b USING (subscription_uid)
	), put_off AS (
		UPDATE deliveries d
		   SET slot_at = p.slot_at, next_attempt_at = p.slot_at, queued = false
		  FROM placed p
		 WHERE d.delivery_uid = p.delivery_uid
		   AND d.created_at = p.created_at
		   AND ` + isOpen + `
		   AND d.queued
		   AND p.slot_at > $5
	)
	SELECT delivery_uid FROM placed WHERE slot_at <= $5`

// bookMany books a slot for each delivery and reports which slots have come.
func (s *Service) bookMany(ctx context.Context, on *sqlx.DB, tasks []assignment) ([]bool, error) {
	var subscriptions, rates, uids, times arrayLiteral
	for _, task := range tasks {
		subscriptions.addUID(task.Subscription)
		rates.addInt(int64(*task.Rate))
		uids.addUID(task.UID)
		times.addTime(task.CreatedAt)
	}
	var due []uuid.UUID
	err := on.SelectContext(ctx, &due, bookSlots,
		subscriptions.String(), rates.String(), uids.String(), times.String(), s.DB.Now().UTC())
	if err != nil {
		return nil, err
	}
	may := make([]bool, len(tasks))
	for i, task := range tasks {
		may[i] = slices.Contains(due, task.UID)
	}
	return may, nil
}
