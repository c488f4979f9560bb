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

// Counts are sums over attempts and deliveries by when they ended. Test events are left
// out; re-sends count like any delivery.
type Counts struct {
	// Attempts is how many attempts were made, Succeeded how many of them the endpoint
	// confirmed.
	Attempts  int `db:"attempts"`
	Succeeded int `db:"succeeded"`
	// Delivered and Failed are deliveries that ended, by outcome.
	Delivered int `db:"delivered"`
	Failed    int `db:"failed"`
	// Latency is the histogram of the durations of successful attempts.
	Latency Histogram `db:"latency"`
}

// Add adds other counts.
func (c *Counts) Add(other Counts) {
	c.Attempts += other.Attempts
	c.Succeeded += other.Succeeded
	c.Delivered += other.Delivered
	c.Failed += other.Failed
	c.Latency.Add(other.Latency)
}

// SuccessRate is the share of attempts that succeeded, from 0 to 1; known is
// false without any attempt.
func (c Counts) SuccessRate() (rate float64, known bool) {
	if c.Attempts <= 0 {
		return 0, false
	}
	return float64(c.Succeeded) / float64(c.Attempts), true
}

// Hour holds the counts of one hour of a subscription.
type Hour struct {
	// Start is the beginning of the hour, in UTC.
	Start time.Time
	Counts
}

// ErrorGroup is one kind of failure of a subscription.
type ErrorGroup struct {
	Class sender.ErrorClass `db:"error_class"`
	// Status is 0 if no answer came.
	Status int `db:"http_status"`
	Count  int `db:"attempts"`
	// First and Last are when attempts failed in this way, within the period queried.
	First time.Time `db:"first_seen"`
	Last  time.Time `db:"last_seen"`
}

// Health describes how the sending to a subscription went. It is at most some seconds
// behind the log, see [Service.Tally].
type Health struct {
	// Hours has an entry for every hour of the period queried, oldest first.
	Hours []Hour
	// Counts are the totals over the hours.
	Counts
	// Errors are the kinds of failure, the most recent first.
	Errors []ErrorGroup
	// LastSuccess and LastFailure are nil if there has never been one.
	LastSuccess, LastFailure *time.Time
	// FailingSince is when the first failure after the last success ended; nil if the last
	// attempt succeeded.
	FailingSince *time.Time
	// ConsecutiveFailures counts the attempts that failed since the last success.
	ConsecutiveFailures int
	// LastStatus, LastClass and LastError are those of the last failure.
	LastStatus int
	LastClass  sender.ErrorClass
	LastError  string
}

// P50 is the median duration of the successful attempts, zero if there are none.
func (h Health) P50() time.Duration { return h.Latency.Percentile(0.50) }

// P95 is the duration below which 95 of 100 successful attempts stayed, zero if there are
// none.
func (h Health) P95() time.Duration { return h.Latency.Percentile(0.95) }

// Read returns the health of each of the subscriptions from the hour of since to that of
// until, both included. Subscriptions that were never sent to are included, with empty
// hours.
func (s *Service) Read(
	ctx context.Context, uids []uuid.UUID, since, until time.Time,
) (map[uuid.UUID]Health, error) {
	first, last := hourOf(since), hourOf(until)
	found := make(map[uuid.UUID]*Health, len(uids))
	for _, uid := range uids {
		found[uid] = &Health{}
		for at := first; !at.After(last); at = at.Add(time.Hour) {
			found[uid].Hours = append(found[uid].Hours, Hour{Start: at})
		}
	}
	if err := s.readHours(ctx, found, first, last); err != nil {
		return nil, err
	}
	if err := s.readErrors(ctx, found, first, last); err != nil {
		return nil, err
	}
	if err := s.readStreaks(ctx, found); err != nil {
		return nil, err
	}
	result := make(map[uuid.UUID]Health, len(found))
	for uid, health := range found {
		result[uid] = *health
	}
	return result, nil
}

func (s *Service) readHours(
	ctx context.Context, found map[uuid.UUID]*Health, first, last time.Time,
) error {
	var rows []struct {
		Subscription uuid.UUID `db:"subscription_uid"`
		Hour         time.Time `db:"hour"`
		Counts
	}
	err := s.DB.SelectContext(ctx, &rows, `
		SELECT subscription_uid, hour, attempts, succeeded, delivered, failed, latency
		  FROM subscription_hours
		 WHERE subscription_uid = ANY ($1::uuid[])
		   AND hour BETWEEN $2 AND $3`, pq.Array(slices.Collect(maps.Keys(found))), first, last)
	if err != nil {
		return fmt.Errorf("reading the hours of subscriptions: %w", err)
	}
	for _, row := range rows {
		health := found[row.Subscription]
		health.Hours[int(row.Hour.Sub(first)/time.Hour)].Counts = row.Counts
		health.Add(row.Counts)
	}
	return nil
}

func (s *Service) readErrors(
	ctx context.Context, found map[uuid.UUID]*Health, first, last time.Time,
) error {
	var rows []struct {
		Subscription uuid.UUID `db:"subscription_uid"`
		ErrorGroup
	}
	err := s.DB.SelectContext(ctx, &rows, `
		SELECT subscription_uid, error_class, http_status,
		       sum(attempts) AS attempts,
		       min(first_seen) AS first_seen,
		       max(last_seen) AS last_seen
		  FROM subscription_errors
		 WHERE subscription_uid = ANY ($1::uuid[])
		   AND hour BETWEEN $2 AND $3
		   AND attempts > 0
		 GROUP BY subscription_uid, error_class, http_status
		 ORDER BY last_seen DESC, error_class, http_status`,
		pq.Array(slices.Collect(maps.Keys(found))), first, last)
	if err != nil {
		return fmt.Errorf("reading the errors of subscriptions: %w", err)
	}
	for _, row := range rows {
		health := found[row.Subscription]
		health.Errors = append(health.Errors, row.ErrorGroup)
	}
	return nil
}

func (s *Service) readStreaks(ctx context.Context, found map[uuid.UUID]*Health) error {
	var rows []streak
	err := s.DB.SelectContext(ctx, &rows, `
		SELECT `+streakColumns+`
		  FROM subscription_health
		 WHERE subscription_uid = ANY ($1::uuid[])`, pq.Array(slices.Collect(maps.Keys(found))))
	if err != nil {
		return fmt.Errorf("reading the health of subscriptions: %w", err)
	}
	for _, row := range rows {
		health := found[row.Subscription]
		health.LastSuccess, health.LastFailure = row.LastSuccess, row.LastFailure
		health.FailingSince, health.ConsecutiveFailures = row.Since, row.Failures
		health.LastStatus, health.LastError = postgres.OrZero(row.LastStatus), row.LastError
		health.LastClass = postgres.OrZero(row.LastClass)
	}
	return nil
}
