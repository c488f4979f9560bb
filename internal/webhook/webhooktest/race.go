package webhooktest

import (
	"testing"
	"time"
)

// Backlog adds deliveries of one event that wait to be enqueued.
func (h *Harness) Backlog(t testing.TB, count int, due time.Time) {
	t.Helper()
	event := h.Publish(t)
	h.Exec(t, `DELETE FROM river_job`)
	h.Exec(t, `DELETE FROM deliveries WHERE event_uid = $1`, event.UID)
	h.Exec(t, `
		INSERT INTO deliveries (delivery_uid, created_at, subscription_uid, event_uid, event_at,
		                        event, application_uid, status, state, next_attempt_at, queued)
		SELECT drawbridge_uid($1), $1, s.subscription_uid, $2, $3, $4, $5, $6, 'pending', $7, false
		  FROM generate_series(1, $8), subscriptions s`,
		h.Clock.Now(), event.UID, event.OccurredAt, string(event.Kind), event.ApplicationUID,
		event.Status, due, count)
}
