package health

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/lib/pq"

	"drawbridge/internal/postgres"
	"drawbridge/internal/webhook/sender"
)

// streak is the run of failed attempts since a subscription's last success, and the run
// before it.
type streak struct {
	Subscription uuid.UUID          `db:"subscription_uid"`
	LastSuccess  *time.Time         `db:"last_success_at"`
	LastFailure  *time.Time         `db:"last_failure_at"`
	LastStatus   *int               `db:"last_http_status"`
	LastClass    *sender.ErrorClass `db:"last_error_class"`
	LastError    string             `db:"last_error"`
	// Since is when the first failure of the run ended, nil if there is no run.
	Since *time.Time `db:"failing_since"`
	// Failures counts the failed attempts of the run.
	Failures       int        `db:"failures"`
	FormerSince    *time.Time `db:"former_since"`
	FormerFailures int        `db:"former_failures"`
}

// apply adds an outcome. Outcomes come in the order in which they were written, which is
// not always the order in which the attempts ended: a success ends only the part of a run
// that came before it, and where that cannot be determined the run is taken to begin
// later rather than earlier.
func (s *streak) apply(row outcomeRow) {
	switch {
	case row.Attempts > 0 && row.Class == "":
		s.succeed(row.EndedAt)
	case row.Attempts > 0:
		s.fail(row)
	case row.Attempts < 0 && s.Since != nil && !row.EndedAt.Before(*s.Since):
		// The outcome that replaces this one follows.
		if s.Failures--; s.Failures == 0 {
			s.Since = nil
		}
	}
}

func (s *streak) succeed(at time.Time) {
	if s.LastSuccess == nil || at.After(*s.LastSuccess) {
		s.LastSuccess = &at
	}
	if s.Since == nil || at.Before(*s.Since) {
		return
	}
	s.FormerSince, s.FormerFailures = s.Since, s.Failures
	s.Since, s.Failures = nil, 0
	if s.LastFailure.After(at) {
		s.Since, s.Failures = s.LastFailure, 1
	}
}

func (s *streak) fail(row outcomeRow) {
	at := row.EndedAt
	if s.LastFailure == nil || !at.Before(*s.LastFailure) {
		s.LastFailure, s.LastStatus = &at, row.Status
		s.LastClass, s.LastError = &row.Class, row.Error
	}
	if s.LastSuccess != nil && !at.After(*s.LastSuccess) {
		return
	}
	s.Failures++
	if s.Since == nil || at.Before(*s.Since) {
		s.Since = &at
	}
}

const streakColumns = `
	subscription_uid, last_success_at, last_failure_at, last_http_status, last_error_class,
	last_error, failing_since, failures, former_since, former_failures`

// addStreaks updates the streaks with the outcomes, in their order. Code that changes a
// streak must hold the lock of the summaries or that of the streak's row.
func addStreaks(ctx context.Context, tx *postgres.Tx, rows []outcomeRow) error {
	streaks := make(map[uuid.UUID]*streak)
	for _, row := range rows {
		streaks[row.Subscription] = &streak{Subscription: row.Subscription}
	}
	var known []streak
	err := tx.SelectContext(ctx, &known, `
		SELECT `+streakColumns+`
		  FROM subscription_health
		 WHERE subscription_uid = ANY ($1::uuid[])
		 ORDER BY subscription_uid
		   FOR UPDATE`, pq.Array(slices.Collect(maps.Keys(streaks))))
	if err != nil {
		return fmt.Errorf("locking the health of subscriptions: %w", err)
	}
	for _, one := range known {
		streaks[one.Subscription] = &one
	}
	for _, row := range rows {
		streaks[row.Subscription].apply(row)
	}
	for _, one := range streaks {
		_, err := tx.ExecContext(ctx, `
			INSERT INTO subscription_health (`+streakColumns+`)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
			    ON CONFLICT (subscription_uid) DO UPDATE
			   SET last_success_at = excluded.last_success_at,
			       last_failure_at = excluded.last_failure_at,
			       last_http_status = excluded.last_http_status,
			       last_error_class = excluded.last_error_class, last_error = excluded.last_error,
			       failing_since = excluded.failing_since, failures = excluded.failures,
			       former_since = excluded.former_since,
			       former_failures = excluded.former_failures`,
			one.Subscription, one.LastSuccess, one.LastFailure, one.LastStatus, one.LastClass,
			one.LastError, one.Since, one.Failures, one.FormerSince, one.FormerFailures)
		if err != nil {
			return fmt.Errorf("saving the health of subscription %s: %w", one.Subscription, err)
		}
	}
	return nil
}
