package webhook

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/google/uuid"
	"github.com/lib/pq"

	"drawbridge/internal/lending"
)

// assignment is what one attempt needs to know.
type assignment struct {
	UID               uuid.UUID         `db:"delivery_uid"`
	CreatedAt         time.Time         `db:"created_at"`
	State             DeliveryState     `db:"state"`
	AttemptCount      int               `db:"attempt_count"`
	Event             lending.EventKind `db:"event"`
	Test              bool              `db:"test"`
	Body              []byte            `db:"body"`
	Subscription      uuid.UUID         `db:"subscription_uid"`
	SubscriptionState State             `db:"subscription_state"`
	URL               string            `db:"url"`
	Auth              Auth              `db:"auth"`
	SecretSealed      *string           `db:"secret_sealed"`
	PreviousSealed    *string           `db:"previous_sealed"`
	PreviousUntil     *time.Time        `db:"previous_until"`
	HeadersSealed     *string           `db:"headers_sealed"`
	Version           int               `db:"version"`
}

// Deliver makes the attempt that a job asks for, and writes down how it ended
// and what follows. died tells that an earlier run of the same job began and
// never wrote an outcome: whether the partner got that request cannot be known,
// so it counts, as unknown, and is not repeated under the same number.
//
// An error means that nothing was sent and the job should run again, except
// after a request whose outcome could not be written: then the next run finds
// died true. A partner's refusal is an outcome, not an error.
func (s *Service) Deliver(ctx context.Context, job DeliverArgs, died bool) error {
	task, err := s.loadAssignment(ctx, job)
	if err != nil {
		return err
	}
	switch {
	case task.State.IsFinal(), task.AttemptCount != job.Number-1:
		// Written down already, or the subscription was deleted meanwhile.
		return nil
	case died:
		return s.record(ctx, task, job.Number, unknownAttempt(), s.DB.Now())
	case task.SubscriptionState == StatePaused:
		parked, err := s.park(ctx, task)
		if err != nil || parked {
			return err
		}
	}
	request, err := s.request(task, job.Number)
	if err != nil {
		return err
	}
	started := s.DB.Now()
	attempt := s.Sender.Send(ctx, request)
	if err := context.Cause(ctx); err != nil {
		// The process is stopping: what became of the request is not known.
		return fmt.Errorf("delivering %s: %w", task.UID, err)
	}
	return s.record(ctx, task, job.Number, attempt, started)
}

func (s *Service) loadAssignment(ctx context.Context, job DeliverArgs) (assignment, error) {
	var task assignment
	err := s.DB.GetContext(ctx, &task, `
		SELECT d.delivery_uid,
		       d.created_at,
		       d.state,
		       d.attempt_count,
		       d.event,
		       d.test,
		       e.body,
		       s.subscription_uid,
		       s.state AS subscription_state,
		       s.url,
		       s.auth,
		       s.secret_sealed,
		       s.previous_sealed,
		       s.previous_until,
		       s.headers_sealed,
		       s.version
		  FROM deliveries d
		  JOIN events e ON e.event_uid = d.event_uid AND e.occurred_at = d.event_at
		  JOIN subscriptions s USING (subscription_uid)
		 WHERE d.delivery_uid = $1
		   AND d.created_at = $2`, job.DeliveryUID, job.CreatedAt)
	if err != nil {
		return assignment{}, fmt.Errorf("loading delivery %s: %w", job.DeliveryUID, err)
	}
	return task, nil
}

// request builds the attempt from the subscription as it is now.
func (s *Service) request(task assignment, number int) (Request, error) {
	request := Request{
		URL:      task.URL,
		Event:    string(task.Event),
		Delivery: task.UID.String(),
		Number:   number,
		Test:     task.Test,
		Auth:     task.Auth,
		Body:     task.Body,
	}
	var err error
	if request.Headers, err = s.openHeaders(task.Subscription, task.HeadersSealed); err != nil {
		return Request{}, err
	}
	if request.Secret, err = s.openSecret(task.Subscription, task.SecretSealed); err != nil {
		return Request{}, err
	}
	if task.PreviousUntil != nil && s.DB.Now().Before(*task.PreviousUntil) {
		request.Previous, err = s.openSecret(task.Subscription, task.PreviousSealed)
	}
	return request, err
}

// park sets a delivery of a paused subscription aside until it resumes. The
// share lock on the subscription makes a simultaneous resumption either come
// first, and then nothing is parked, or wait and find the delivery parked.
func (s *Service) park(ctx context.Context, task assignment) (bool, error) {
	var uids pq.StringArray
	err := s.DB.GetContext(ctx, &uids, `
		WITH paused AS (
			SELECT subscription_uid
			  FROM subscriptions
			 WHERE subscription_uid = $3
			   AND state = 'paused'
			   FOR SHARE
		), parked AS (
			UPDATE deliveries
			   SET parked = true,
			       queued = false
			 WHERE delivery_uid = $1
			   AND created_at = $2
			   AND state IN ('pending', 'retrying')
			   AND EXISTS (SELECT 1 FROM paused)
			RETURNING delivery_uid::text
		)
		SELECT array_agg(delivery_uid) FROM parked`, task.UID, task.CreatedAt, task.Subscription)
	if err != nil {
		return false, fmt.Errorf("parking delivery %s: %w", task.UID, err)
	}
	return len(uids) > 0, nil
}

// unknownAttempt stands for an attempt whose process died before it could say
// how the request ended.
func unknownAttempt() Attempt {
	return Attempt{
		Class: ClassUnknown,
		Error: "the process stopped during the attempt; whether the request arrived is not known",
	}
}

// outcome is what an attempt means for its delivery.
type outcome struct {
	state DeliveryState
	// next is when the next attempt is due, nil without one.
	next *time.Time
}

func (s *Service) outcome(number int, attempt Attempt, now time.Time) outcome {
	if attempt.Delivered() {
		return outcome{state: DeliveryDelivered}
	}
	due, more := s.Retries.Next(number, now, attempt)
	if !more {
		return outcome{state: DeliveryFailed}
	}
	if attempt.Class == ClassUnknown {
		// The time that the attempt was lost for has been delay enough.
		due = now
	}
	return outcome{state: DeliveryRetrying, next: &due}
}

// record writes an attempt and the delivery's new state in one statement.
//
// The delivery moves only if this is its next attempt, so that a worker that
// was frozen, taken for dead and woken again can neither undo nor repeat what
// another one decided; only its late success still counts, since the partner
// has the event. Its late outcome replaces the unknown one in the log.
func (s *Service) record(
	ctx context.Context, task assignment, number int, attempt Attempt, started time.Time,
) error {
	now := s.DB.Now().UTC()
	outcome := s.outcome(number, attempt, now)
	row, err := newAttemptParams(attempt)
	if err != nil {
		return err
	}
	var finished *time.Time
	if outcome.state.IsFinal() {
		finished = &now
	}
	_, err = s.DB.ExecContext(ctx, `
		WITH attempt AS (
			INSERT INTO attempts AS a (
			       delivery_uid, delivery_created_at, number, started_at, subscription_version, url,
			       http_status, error_class, error, note, address, dns_us, connect_us, tls_us,
			       first_byte_us, duration_us, request_headers, response_headers, response_body)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17,
			        $18, $19)
			ON CONFLICT (delivery_uid, delivery_created_at, number) DO UPDATE
			   SET http_status = excluded.http_status,
			       error_class = excluded.error_class,
			       error = excluded.error,
			       note = excluded.note,
			       address = excluded.address,
			       duration_us = excluded.duration_us,
			       request_headers = excluded.request_headers,
			       response_headers = excluded.response_headers,
			       response_body = excluded.response_body
			 WHERE a.error_class = 'unknown'
		)
		UPDATE deliveries
		   SET state = $20,
		       attempt_count = greatest(attempt_count, $3),
		       next_attempt_at = $21,
		       finished_at = $22,
		       queued = false,
		       parked = false,
		       last_http_status = $7,
		       last_error_class = $8,
		       last_duration_us = $16
		 WHERE delivery_uid = $1
		   AND created_at = $2
		   AND ((state IN ('pending', 'retrying') AND attempt_count = $3 - 1)
		        OR ($20 = 'delivered' AND state IN ('pending', 'retrying', 'failed')))`,
		task.UID, task.CreatedAt, number, started, task.Version, task.URL,
		row.status, row.class, row.errorText, row.note, row.address, row.dns, row.connect, row.tls,
		row.firstByte, row.total, row.requestHeaders, row.responseHeaders, attempt.ResponseBody,
		string(outcome.state), outcome.next, finished)
	if err != nil {
		return fmt.Errorf("recording attempt %d of delivery %s: %w", number, task.UID, err)
	}
	s.logAttempt(ctx, task, number, attempt, outcome)
	return nil
}

// logAttempt writes the one wide line of an attempt.
func (s *Service) logAttempt(
	ctx context.Context, task assignment, number int, attempt Attempt, outcome outcome,
) {
	slog.InfoContext(ctx, "webhook attempt",
		"delivery", task.UID,
		"subscription", task.Subscription,
		"event", task.Event,
		"attempt", number,
		"status", attempt.Status,
		"error_class", attempt.Class,
		"duration_ms", attempt.Timings.Total.Milliseconds(),
		"state", outcome.state,
		"test", task.Test,
		"lag_ms", s.DB.Now().Sub(task.CreatedAt).Milliseconds())
}

// MarkOrphans is for a process that starts after a restore or an upgrade of the
// queue: it hands deliveries that claim to be queued but have been due for
// longer than patience back to the promoter, unless the queue still has their
// job. It returns how many.
func (s *Service) MarkOrphans(ctx context.Context, patience time.Duration) (int64, error) {
	result, err := s.DB.ExecContext(ctx, `
		UPDATE deliveries d
		   SET queued = false
		 WHERE d.state IN ('pending', 'retrying')
		   AND d.queued
		   AND d.next_attempt_at < $1
		   AND NOT EXISTS (
		           SELECT 1
		             FROM river_job j
		            WHERE j.args @> jsonb_build_object('delivery_uid', d.delivery_uid)
		              AND j.kind = $2
		              AND j.finalized_at IS NULL)`,
		s.DB.Now().Add(-patience), DeliverArgs{}.Kind())
	if err != nil {
		return 0, fmt.Errorf("looking for deliveries without a job: %w", err)
	}
	return result.RowsAffected()
}
