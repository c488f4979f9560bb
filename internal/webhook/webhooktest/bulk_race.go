package webhooktest

import (
	"testing"
	"time"
)

// ManyFailed writes failed deliveries, each of an event of its own.
func (h *Harness) ManyFailed(t testing.TB, count int) {
	t.Helper()
	h.Exec(t, `
		WITH event AS (
			INSERT INTO events (event_uid, occurred_at, kind, partner_uid, merchant_uid,
			                    application_uid, status, body)
			SELECT drawbridge_uid($1), $1::timestamptz + n * interval '1 microsecond',
			       'task.created', $2, $3, $4, 'Pending', '{}'
			  FROM generate_series(1, $5) AS n
			RETURNING *
		)
		INSERT INTO deliveries (delivery_uid, created_at, subscription_uid, event_uid, event_at,
		                        event, application_uid, status, state, attempt_count, queued)
		SELECT drawbridge_uid($1), $1, s.subscription_uid, event_uid, occurred_at, kind,
		       application_uid, status, 'failed', 3, false
		  FROM event, subscriptions s
		 WHERE s.partner_uid = $2`,
		h.Clock.Now(), h.Partner, h.Merchant, h.Application, count)
	h.Clock.Move(time.Second)
}
