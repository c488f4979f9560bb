package webhook

import (
	"context"
	"fmt"
	"log/slog"
	"time"
)

// recordTimeout bounds the writing of an attempt, which goes on when the
// process is asked to stop.
const recordTimeout = 10 * time.Second

// outcome is what an attempt means for its delivery.
type outcome struct {
	state DeliveryState
	// next is when the next attempt is due, nil without one.
	next *time.Time
	// finished is when the delivery ended, nil while it goes on.
	finished *time.Time
}

func (s *Service) outcome(number int, attempt Attempt, now time.Time) outcome {
	if attempt.Delivered() {
		return outcome{state: DeliveryDelivered, finished: &now}
	}
	due, more := s.Retries.Next(number, now, attempt)
	if !more {
		return outcome{state: DeliveryFailed, finished: &now}
	}
	if attempt.Class == ClassUnknown {
		// The time that the attempt was lost for has been delay enough.
		due = now
	}
	return outcome{state: DeliveryRetrying, next: &due}
}

// recordAttempt writes an attempt and the delivery's new state.
//
// The delivery moves only if this is its next attempt, so that a worker that
// was frozen, taken for dead and woken again can neither undo nor repeat what
// another one decided; only its late success still counts, since the partner
// has the event. The same holds for a success after the subscription was
// deleted. A late outcome replaces the unknown one in the log, and every
// attempt that was made is counted.
const recordAttempt = `
	WITH attempt AS (
		INSERT INTO attempts AS a (
		       delivery_uid, delivery_created_at, number, started_at, subscription_version, url,
		       http_status, error_class, error, note, address, dns_us, connect_us, tls_us,
		       first_byte_us, duration_us, request_headers, response_headers, response_body,
		       protocol, reused, tls_version, certificate_expires)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17,
		        $18, $19, $23, $24, $25, $26)
		ON CONFLICT (delivery_uid, delivery_created_at, number) DO UPDATE
		   SET started_at = excluded.started_at,
		       subscription_version = excluded.subscription_version,
		       url = excluded.url,
		       http_status = excluded.http_status,
		       error_class = excluded.error_class,
		       error = excluded.error,
		       note = excluded.note,
		       address = excluded.address,
		       dns_us = excluded.dns_us,
		       connect_us = excluded.connect_us,
		       tls_us = excluded.tls_us,
		       first_byte_us = excluded.first_byte_us,
		       duration_us = excluded.duration_us,
		       request_headers = excluded.request_headers,
		       response_headers = excluded.response_headers,
		       response_body = excluded.response_body,
		       protocol = excluded.protocol,
		       reused = excluded.reused,
		       tls_version = excluded.tls_version,
		       certificate_expires = excluded.certificate_expires
		 WHERE a.error_class = 'unknown'
	), moved AS (
		UPDATE deliveries
		   SET state = $20,
		       attempt_count = greatest(attempt_count, $3),
		       next_attempt_at = $21,
		       finished_at = $22,
		       queued = false,
		       parked = false,
		       held = false,
		       last_http_status = $7,
		       last_error_class = $8,
		       last_duration_us = $16
		 WHERE delivery_uid = $1
		   AND created_at = $2
		   AND ((state IN ('pending', 'retrying') AND attempt_count = $3 - 1)
		        OR ($20 = 'delivered' AND state <> 'delivered'))
		RETURNING 1
	), counted AS (
		UPDATE deliveries
		   SET attempt_count = $3
		 WHERE delivery_uid = $1
		   AND created_at = $2
		   AND attempt_count < $3
		   AND NOT EXISTS (SELECT 1 FROM moved)
	)
	SELECT EXISTS (SELECT 1 FROM moved)`

// record writes an attempt as recordAttempt says, also when ctx has ended.
func (s *Service) record(
	ctx context.Context, task assignment, number int, attempt Attempt, started time.Time,
) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordTimeout)
	defer cancel()
	outcome := s.outcome(number, attempt, s.DB.Now().UTC())
	row, err := newAttemptParams(attempt)
	if err != nil {
		return err
	}
	var moved bool
	err = s.DB.GetContext(ctx, &moved, recordAttempt,
		task.UID, task.CreatedAt, number, started, task.Version, task.URL,
		row.status, row.class, row.errorText, row.note, row.address, row.dns, row.connect, row.tls,
		row.firstByte, row.total, row.requestHeaders, row.responseHeaders, attempt.ResponseBody,
		string(outcome.state), outcome.next, outcome.finished,
		row.protocol, row.reused, row.tlsVersion, row.certificateExpires)
	if err != nil {
		return fmt.Errorf("recording attempt %d of delivery %s: %w", number, task.UID, err)
	}
	slog.InfoContext(ctx, "webhook attempt",
		"delivery", task.UID,
		"subscription", task.Subscription,
		"event", task.Event,
		"attempt", number,
		"status", attempt.Status,
		"error_class", attempt.Class,
		"duration_ms", attempt.Timings.Total.Milliseconds(),
		"state", outcome.state,
		"late", !moved,
		"test", task.Test,
		"lag_ms", s.DB.Now().Sub(task.CreatedAt).Milliseconds())
	return nil
}
