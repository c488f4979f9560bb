package health

import (
	"context"
	"fmt"
	"time"
)

// TrafficKept is how long traffic by the minute is kept; hourly data is kept for
// HoursKept.
const (
	TrafficKept = 3 * 24 * time.Hour
	HoursKept   = 400 * 24 * time.Hour
)

// TrafficStep holds the counts of one time step over all subscriptions.
type TrafficStep struct {
	// Start is the beginning of the step, in UTC.
	Start time.Time
	Counts
}

// Traffic returns the counts of attempts and deliveries that ended from since to just
// before until, in steps of one length, oldest first, empty ones included. The length is
// a whole number of minutes; minutes are available for the last three days, whole hours
// for more than a year.
func (s *Service) Traffic(
	ctx context.Context, since, until time.Time, step time.Duration,
) ([]TrafficStep, error) {
	unit := "minute"
	if step%time.Hour == 0 {
		unit = "hour"
	}
	since = since.UTC().Truncate(step)
	var steps []TrafficStep
	for at := since; at.Before(until); at = at.Add(step) {
		steps = append(steps, TrafficStep{Start: at})
	}
	var rows []struct {
		Start time.Time `db:"start"`
		Counts
	}
	err := s.DB.SelectContext(ctx, &rows, `
		SELECT start, attempts, succeeded, delivered, failed, latency
		  FROM traffic
		 WHERE unit = $1
		   AND start >= $2
		   AND start < $3`, unit, since, until.UTC())
	if err != nil {
		return nil, fmt.Errorf("reading the traffic: %w", err)
	}
	for _, row := range rows {
		steps[int(row.Start.Sub(since)/step)].Add(row.Counts)
	}
	return steps, nil
}

// Backlog describes the deliveries that wait to be sent.
type Backlog struct {
	// Waiting counts the open deliveries, at most 10,000 of them.
	Waiting int `db:"waiting"`
	// OldestDue is when the longest overdue delivery fell due, nil if none is due.
	OldestDue *time.Time `db:"oldest_due"`
	// Failing counts the failing subscriptions.
	Failing int `db:"failing"`
}

// Backlog returns the current backlog, or one of a few seconds ago if it is expensive to read.
func (s *Service) Backlog(ctx context.Context) (Backlog, error) {
	return s.backlog.Get(struct{}{}, func() (Backlog, error) {
		var backlog Backlog
		err := s.DB.GetContext(ctx, &backlog, `
			SELECT (SELECT count(*)
			          FROM (SELECT
			                  FROM deliveries
			                 WHERE state IN ('pending', 'retrying')
			                 LIMIT $1) AS open) AS waiting,
			       least((SELECT next_attempt_at
			                FROM deliveries
			               WHERE queued
			               ORDER BY next_attempt_at
			               LIMIT 1),
			             (SELECT next_attempt_at
			                FROM deliveries
			               WHERE state IN ('pending', 'retrying')
			                 AND NOT queued
			                 AND NOT parked
			                 AND NOT held
			                 AND next_attempt_at <= $2
			               ORDER BY next_attempt_at
			               LIMIT 1)) AS oldest_due,
			       (SELECT count(*) FROM subscriptions WHERE state = 'failing') AS failing`,
			maxOverdue, s.DB.Now().UTC())
		if err != nil {
			return Backlog{}, fmt.Errorf("reading what waits: %w", err)
		}
		return backlog, nil
	})
}

// PruneHealth removes summaries past their retention.
func (s *Service) PruneHealth(ctx context.Context) error {
	now := s.DB.Now().UTC()
	for _, old := range []struct {
		statement string
		before    time.Time
	}{
		{`DELETE FROM traffic WHERE unit = 'minute' AND start < $1`, now.Add(-TrafficKept)},
		{`DELETE FROM traffic WHERE unit = 'hour' AND start < $1`, now.Add(-HoursKept)},
		{`DELETE FROM probe_changes WHERE at < $1`, now.Add(-HoursKept)},
		{`DELETE FROM subscription_hours WHERE hour < $1`, now.Add(-HoursKept)},
		{`DELETE FROM subscription_errors WHERE hour < $1`, now.Add(-HoursKept)},
	} {
		if _, err := s.DB.ExecContext(ctx, old.statement, old.before); err != nil {
			return fmt.Errorf("removing old summaries: %w", err)
		}
	}
	return nil
}
