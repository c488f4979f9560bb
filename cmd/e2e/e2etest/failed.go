package e2etest

import "github.com/google/uuid"

// FailedDeliveries writes count deliveries of the subscription that have used up their attempts.
func (w *Harness) FailedDeliveries(data Demo, subscription uuid.UUID, count int) {
	w.T.Helper()
	db := w.Open(w.T)
	const batch = 500 // events of one application are numbered, so all at once would take long
	for from := 0; from < count; from += batch {
		_, err := db.ExecContext(w.T.Context(), `
			WITH subject AS (
				SELECT merchant_uid, application_uid,
				       row_number() OVER (ORDER BY application_uid) - 1 AS place,
				       count(*) OVER () AS places
				  FROM applications
				 WHERE partner_uid = $1
			), event AS (
				INSERT INTO events (event_uid, occurred_at, kind, partner_uid, merchant_uid,
				                    application_uid, status, body)
				SELECT gen_random_uuid(), now() - interval '1 hour' + n * interval '1 millisecond',
				       'task.created', $1, merchant_uid, application_uid, 'Pending', '{"n":1}'
				  FROM generate_series($3::integer, $4::integer - 1) AS n
				  JOIN subject ON place = n % places
				RETURNING *
			)
			INSERT INTO deliveries (delivery_uid, created_at, subscription_uid, event_uid, event_at,
			                        event, application_uid, status, state, attempt_count, queued,
			                        last_http_status, last_error_class, last_duration_us)
			SELECT gen_random_uuid(), occurred_at, $2, event_uid, occurred_at, kind,
			       application_uid, status, 'failed', 3, false, 503, 'http_5xx', 1000
			  FROM event`, data.Partners[0].UID, subscription, from, min(from+batch, count))
		if err != nil {
			w.T.Fatal(err)
		}
	}
}
