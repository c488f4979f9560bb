package health

import (
	"context"
	"fmt"
	"time"
)

// TrafficKept is for how long the minutes of the traffic are kept; hours are
// kept for HoursKept.
const (
	TrafficKept = 3 * 24 * time.Hour
	HoursKept   = 400 * 24 * time.Hour
)

// TrafficStep is one step of time of all subscriptions together.
type TrafficStep struct {
	// Start is the beginning of the step, in UTC.
	Start time.Time
	Counts
}

// Traffic returns what ended from since until before until, summed up in steps
// of one length, oldest first, empty ones included. The length is a whole number
// of minutes; minutes are there for the last three days, whole hours for more
// than a year.
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

// Backlog is what waits to be sent.
type Backlog struct {
	// Waiting counts the open deliveries, at most 10,000 of them.
	Waiting int `db:"waiting"`
	// OldestDue is when the one that is due longest was due, nil when nothing is.
	OldestDue *time.Time `db:"oldest_due"`
	// Failing counts the subscriptions in that state.
	Failing int `db:"failing"`
}

// Backlog reads what waits now, or did a few seconds ago where that is dear to read.
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

// PruneHealth removes summaries that are kept no longer.
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
