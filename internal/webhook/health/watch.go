package health

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"

	"drawbridge/internal/lending"
	"drawbridge/internal/postgres"
	"drawbridge/internal/webhook/subscription"
)

// Settings define what counts as failing for subscriptions without rules of their own.
type Settings struct {
	// FailingMinutes is how long every attempt must have failed, 5 to 43,200.
	FailingMinutes int `db:"failing_minutes" json:"failing_minutes"`
	// FailingEvents is how many events must have failed at least, 1 to 10,000.
	FailingEvents int `db:"failing_events" json:"failing_events"`
}

// LoadSettings returns the settings in force.
func (s *Service) LoadSettings(ctx context.Context) (Settings, error) {
	return loadSettings(ctx, s.DB, "")
}

func loadSettings(ctx context.Context, db postgres.Querier, lock string) (Settings, error) {
	var settings Settings
	err := db.GetContext(ctx, &settings,
		`SELECT failing_minutes, failing_events FROM health_settings`+lock)
	if err != nil {
		return Settings{}, fmt.Errorf("loading the health settings: %w", err)
	}
	return settings, nil
}

// SaveSettings replaces the settings and returns the previous ones. by names who asked.
// Error: VALIDATION_ERROR naming every invalid one.
func (s *Service) SaveSettings(
	ctx context.Context, tx *postgres.Tx, settings Settings, by string,
) (Settings, error) {
	var errs lending.FieldErrors
	subscription.CheckFailing(&errs, settings.FailingMinutes, settings.FailingEvents)
	if err := errs.Err(); err != nil {
		return Settings{}, err
	}
	before, err := loadSettings(ctx, tx, ` FOR UPDATE`)
	if err != nil {
		return Settings{}, err
	}
	_, err = tx.ExecContext(ctx, `
		UPDATE health_settings
		   SET failing_minutes = $1, failing_events = $2, updated_at = $3,
		       updated_by = $4`, settings.FailingMinutes, settings.FailingEvents, tx.Now, by)
	if err != nil {
		return Settings{}, fmt.Errorf("saving the health settings: %w", err)
	}
	return before, nil
}

// Overdue describes the deliveries that should have been sent and were not.
type Overdue struct {
	Count int `db:"count"`
	// Oldest is when the longest overdue one was due, nil without any.
	Oldest *time.Time `db:"oldest"`
}

// maxOverdue bounds the count in Overdue.
const maxOverdue = 10_000

// Overdue counts the deliveries that fell due more than a minute ago and have had no
// attempt since, at most 10,000 of them. It leaves out deliveries that wait on purpose:
// those of a paused subscription, and those that wait for a slot at their endpoint. A
// queued delivery may be under way, so it counts only after the longest time that an
// attempt can take, and not while its attempt is noted as begun. An event whose
// deliveries the outbox has not created counts as one.
func (s *Service) Overdue(ctx context.Context, longest time.Duration) (Overdue, error) {
	before := s.DB.Now().UTC().Add(-time.Minute)
	var found Overdue
	err := s.DB.GetContext(ctx, &found, `
		SELECT count(*) AS count, min(next_attempt_at) AS oldest
		  FROM ((SELECT next_attempt_at
		           FROM deliveries
		          WHERE state IN ('pending', 'retrying')
		            AND NOT queued
		            AND NOT parked
		            AND NOT held
		            AND next_attempt_at < $1
		          ORDER BY next_attempt_at
		          LIMIT $3)
		         UNION ALL
		        (SELECT next_attempt_at
		           FROM deliveries d
		          WHERE queued
		            AND state IN ('pending', 'retrying')
		            AND next_attempt_at < $2
		            AND NOT EXISTS (SELECT
		                              FROM begun_attempts b
		                             WHERE b.delivery_uid = d.delivery_uid
		                               AND b.number = d.attempt_count + 1)
		          ORDER BY next_attempt_at
		          LIMIT $3)
		         UNION ALL
		        (SELECT recorded_at
		           FROM outbox
		          WHERE recorded_at < $1
		          ORDER BY outbox_id
		          LIMIT $3)) AS overdue`, before, before.Add(-longest), maxOverdue)
	if err != nil {
		return Overdue{}, fmt.Errorf("looking for overdue deliveries: %w", err)
	}
	return found, nil
}

// NeverSucceeded is a subscription to which nothing was delivered for a long time.
type NeverSucceeded struct {
	Subscription uuid.UUID `db:"subscription_uid"`
	Since        time.Time `db:"since"`
	Failures     int       `db:"failures"`
}

// absence is how long there must have been no success.
const absence = 7 * 24 * time.Hour

// NeverSucceeded lists the subscriptions that have been sent to for seven days or longer
// without a success.
func (s *Service) NeverSucceeded(ctx context.Context) ([]NeverSucceeded, error) {
	var found []NeverSucceeded
	err := s.DB.SelectContext(ctx, &found, `
		SELECT h.subscription_uid, h.failing_since AS since, h.failures
		  FROM subscription_health h
		  JOIN subscriptions s USING (subscription_uid)
		 WHERE h.failing_since <= $1
		   AND s.state IN ('active', 'failing')
		 ORDER BY h.subscription_uid`, s.DB.Now().UTC().Add(-absence))
	if err != nil {
		return nil, fmt.Errorf("looking for subscriptions without a success: %w", err)
	}
	return found, nil
}

// HasSucceeded reports whether an attempt for a subscription of a partner ever succeeded,
// according to the summaries.
func (s *Service) HasSucceeded(ctx context.Context, partnerUID uuid.UUID) (found bool, err error) {
	err = s.DB.GetContext(ctx, &found, `
		SELECT EXISTS (SELECT FROM subscriptions
		                 JOIN subscription_health h USING (subscription_uid)
		                WHERE partner_uid = $1
		                  AND h.last_success_at IS NOT NULL)`, partnerUID)
	if err != nil {
		return false, fmt.Errorf("looking for a success of partner %s: %w", partnerUID, err)
	}
	return found, nil
}

// StillUsedUp reports whether a delivery of the subscription that failed for good since a
// time has still not been made good by another delivery of the same event.
func (s *Service) StillUsedUp(ctx context.Context, uid uuid.UUID, since time.Time) (bool, error) {
	return s.stillOpen(ctx, uid, since, `d.state = 'failed' AND d.made_good_by IS NULL`)
}

// StillUnknown reports whether the latest known outcome of some delivery since a time is
// an attempt of unknown outcome.
func (s *Service) StillUnknown(ctx context.Context, uid uuid.UUID, since time.Time) (bool, error) {
	return s.stillOpen(ctx, uid, since, `d.state IN ('failed', 'retrying')
		AND d.last_error_class = 'unknown'
		AND d.made_good_by IS NULL`)
}

// stillOpen looks for deliveries that ended since a time, first among those created no
// more than 40 days before it. Older ones must have waited long, as during a pause: it
// searches for them, in every month, only if nothing else keeps an alert open. The clocks
// that measure an attempt and its record may differ a little.
func (s *Service) stillOpen(
	ctx context.Context, uid uuid.UUID, since time.Time, condition string,
) (bool, error) {
	look := func(ctx context.Context, created string) (open bool, err error) {
		err = s.DB.GetContext(ctx, &open, `
			SELECT EXISTS (
			       SELECT
			         FROM deliveries d
			        WHERE d.subscription_uid = $1
			          AND NOT d.test
			          AND coalesce(d.finished_at, $2) >= $2::timestamptz - interval '5 seconds'
			          AND `+condition+`
			          AND d.created_at `+created+` $2::timestamptz - interval '40 days')`, uid, since)
		return open, err
	}
	open, err := look(ctx, ">=")
	if err == nil && !open {
		within, cancel := context.WithTimeout(ctx, oldScanTimeout)
		defer cancel()
		open, err = look(within, "<")
		if err != nil && within.Err() != nil && ctx.Err() == nil {
			return true, nil // without an answer in time it stays open
		}
	}
	if err != nil {
		return false, fmt.Errorf("looking for open failures of subscription %s: %w", uid, err)
	}
	return open, nil
}

// oldScanTimeout bounds the search for older deliveries, which no index supports.
const oldScanTimeout = time.Second

// Failure holds what a mail reports about a delivery that failed for good.
type Failure struct {
	Subscription uuid.UUID          `db:"subscription_uid"`
	State        subscription.State `db:"state"`
	PartnerName  string             `db:"partner_name"`
	subscription.Endpoint
	AlertEmail  string `db:"alert_email"`
	Event       string `db:"event"`
	Application string `db:"application_uid"`
	// Error is the text of the last attempt.
	Error string `db:"error"`
}

// DescribeFailure returns the contents of a mail about a delivery. Error: NOT_FOUND.
func (s *Service) DescribeFailure(
	ctx context.Context, tx *postgres.Tx, uid uuid.UUID,
) (Failure, error) {
	var failure Failure
	err := tx.GetContext(ctx, &failure, `
		SELECT s.subscription_uid, s.state, p.name AS partner_name,
		       `+subscription.EndpointColumns+`, s.alert_email, d.event,
		       coalesce(d.application_uid::text, '') AS application_uid,
		       coalesce((SELECT a.error
		                   FROM attempts a
		                  WHERE a.delivery_uid = d.delivery_uid
		                    AND a.delivery_created_at = d.created_at
		                  ORDER BY a.number DESC
		                  LIMIT 1), '') AS error
		  FROM deliveries d
		  JOIN subscriptions s USING (subscription_uid)
		  JOIN partners p USING (partner_uid)
		 WHERE d.delivery_uid = $1`, uid)
	return failure, postgres.RowError(err,
		lending.NewError(lending.CodeNotFound, "no delivery has the id %s", uid),
		"describing delivery %s", uid)
}
