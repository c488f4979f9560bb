package apptest

import (
	"context"
	"time"

	"github.com/google/uuid"

	"drawbridge/internal/lending"
	"drawbridge/internal/postgres"
	"drawbridge/internal/webhook/delivery"
	"drawbridge/internal/webhook/subscription"
)

// Undelivered records an event of the application for a new subscription of its partner, and
// returns its delivery, which has used up its attempts.
func (s *Server) Undelivered(application uuid.UUID) delivery.Delivery {
	s.T.Helper()
	var partner uuid.UUID
	must(s.T, s.DB.GetContext(s.T.Context(), &partner,
		`SELECT partner_uid FROM applications WHERE application_uid = $1`, application))
	on := *s.Harness
	on.Partner = partner
	subscribed := on.Subscribe(s.T, func(settings *subscription.Settings) {
		settings.Events = []string{string(lending.EventTaskCreated)}
	})
	return s.Fail(application, subscribed.UID)
}

// SubscribeHome adds a subscription of Home to all events.
func (s *Server) SubscribeHome() subscription.Subscription {
	s.T.Helper()
	on := *s.Harness
	on.Partner = s.Home.PartnerUID
	return on.Subscribe(s.T, nil)
}

// Fail records a task event of the application and returns its delivery to the subscription, which
// has used up its attempts.
func (s *Server) Fail(application, to uuid.UUID) delivery.Delivery {
	s.T.Helper()
	s.Harness.Do(s.T, func(ctx context.Context, tx *postgres.Tx) error {
		return s.Harness.Events.Record(ctx, tx,
			lending.TaskCreated(application.String(), "Sign", lending.TaskPending))
	})
	found, _, err := s.Webhooks.Deliveries.List(s.T.Context(),
		delivery.Filter{SubscriptionUID: to}, postgres.Paging{Limit: 1})
	must(s.T, err)
	s.End(found[0].UID, delivery.StateFailed)
	return found[0]
}

// End ends a delivery as its last attempt would have.
func (s *Server) End(uid uuid.UUID, state delivery.State) {
	s.T.Helper()
	s.Exec(s.T, `
		WITH ended AS (
			UPDATE deliveries
			   SET state = $2::text, attempt_count = 3, next_attempt_at = NULL, queued = false,
			       last_http_status = CASE $2 WHEN 'failed' THEN 503 ELSE 200 END,
			       last_error_class = CASE $2 WHEN 'failed' THEN 'http_5xx' END, finished_at = $3
			 WHERE delivery_uid = $1
			RETURNING *
		), attempt AS (
			INSERT INTO attempts (delivery_uid, delivery_created_at, number, started_at, http_status,
			                      error_class, error, duration_us, request_headers,
			                      response_headers)
			SELECT delivery_uid, created_at, 1, $3, last_http_status, last_error_class,
			       CASE $2 WHEN 'failed' THEN 'the endpoint answered 503' END, 5000, '[]', '[]'
			  FROM ended
			    ON CONFLICT DO NOTHING
		)
		DELETE FROM river_job WHERE args ->> 'delivery_uid' = $1::text`,
		uid, string(state), s.DB.Now().UTC().Truncate(time.Microsecond))
}
