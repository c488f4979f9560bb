package health

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/lib/pq"

	"drawbridge/internal/postgres"
	"drawbridge/internal/webhook/sender"
)

// Counts sum up attempts and deliveries by when they ended. Test events are
// left out; re-sends count like any delivery.
type Counts struct {
	// Attempts is how many were made, Succeeded how many of them the endpoint
	// confirmed.
	Attempts, Succeeded int
	// Delivered and Failed are deliveries that ended, by outcome.
	Delivered, Failed int
	// Latency holds how long the successful attempts took.
	Latency Histogram
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

// Hour is one hour of a subscription.
type Hour struct {
	// Start is the beginning of the hour, in UTC.
	Start time.Time
	Counts
}

// ErrorGroup is one kind of failure of a subscription.
type ErrorGroup struct {
	Class sender.ErrorClass
	// Status is 0 when no answer came.
	Status int
	Count  int
	// First and Last are when attempts ended so, within the time asked for.
	First, Last time.Time
	// Error is the text of the last one.
	Error string
}

// Health is how the sending to a subscription went. It is at most some seconds
// behind the log, see [Service.Tally].
type Health struct {
	Subscription uuid.UUID
	// Hours has an entry for every hour of the time asked for, oldest first.
	Hours []Hour
	// Counts sum the hours up.
	Counts
	// Errors are the kinds of failure, the most recent first.
	Errors []ErrorGroup
	// LastSuccess and LastFailure are nil when there was none yet, ever.
	LastSuccess, LastFailure *time.Time
	// FailingSince is when the first failure after the last success ended; nil
	// while the last attempt succeeded.
	FailingSince *time.Time
	// ConsecutiveFailures counts the attempts that failed since the last success.
	ConsecutiveFailures int
	// LastStatus, LastClass and LastError are those of the last failure.
	LastStatus int
	LastClass  sender.ErrorClass
	LastError  string
}

// P50 is the median duration of the successful attempts, zero without any.
func (h Health) P50() time.Duration { return h.Latency.Percentile(0.50) }

// P95 is the duration that 95 of 100 successful attempts stayed below, zero
// without any.
func (h Health) P95() time.Duration { return h.Latency.Percentile(0.95) }

// Read returns how each of the subscriptions did from the hour of since until
// that of until, both included. Those that were never sent to are there too,
// with empty hours.
func (s *Service) Read(
	ctx context.Context, uids []uuid.UUID, since, until time.Time,
) (map[uuid.UUID]Health, error) {
	first, last := hourOf(since), hourOf(until)
	found := make(map[uuid.UUID]*Health, len(uids))
	for _, uid := range uids {
		found[uid] = &Health{Subscription: uid, Hours: emptyHours(first, last)}
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

func emptyHours(first, last time.Time) []Hour {
	var hours []Hour
	for at := first; !at.After(last); at = at.Add(time.Hour) {
		hours = append(hours, Hour{Start: at})
	}
	return hours
}

func keysOf(found map[uuid.UUID]*Health) pq.StringArray {
	uids := make(pq.StringArray, 0, len(found))
	for uid := range found {
		uids = append(uids, uid.String())
	}
	return uids
}

// countsRow is a row of a summary.
type countsRow struct {
	Attempts  int           `db:"attempts"`
	Succeeded int           `db:"succeeded"`
	Delivered int           `db:"delivered"`
	Failed    int           `db:"failed"`
	Latency   pq.Int64Array `db:"latency"`
}

func (r countsRow) counts() Counts {
	return Counts{
		Attempts: r.Attempts, Succeeded: r.Succeeded, Delivered: r.Delivered, Failed: r.Failed,
		Latency: Histogram{counts: r.Latency},
	}
}

func (s *Service) readHours(
	ctx context.Context, found map[uuid.UUID]*Health, first, last time.Time,
) error {
	var rows []struct {
		Subscription uuid.UUID `db:"subscription_uid"`
		Hour         time.Time `db:"hour"`
		countsRow
	}
	err := s.DB.SelectContext(ctx, &rows, `
		SELECT subscription_uid, hour, attempts, succeeded, delivered, failed, latency
		  FROM subscription_hours
		 WHERE subscription_uid = ANY ($1::uuid[])
		   AND hour BETWEEN $2 AND $3`, keysOf(found), first, last)
	if err != nil {
		return fmt.Errorf("reading the hours of subscriptions: %w", err)
	}
	for _, row := range rows {
		health, counts := found[row.Subscription], row.counts()
		health.Hours[int(row.Hour.Sub(first)/time.Hour)].Counts = counts
		health.Add(counts)
	}
	return nil
}

func (s *Service) readErrors(
	ctx context.Context, found map[uuid.UUID]*Health, first, last time.Time,
) error {
	var rows []struct {
		Subscription uuid.UUID         `db:"subscription_uid"`
		Class        sender.ErrorClass `db:"error_class"`
		Status       int               `db:"http_status"`
		Count        int               `db:"attempts"`
		First        time.Time         `db:"first_seen"`
		Last         time.Time         `db:"last_seen"`
		Error        string            `db:"error"`
	}
	err := s.DB.SelectContext(ctx, &rows, `
		SELECT subscription_uid, error_class, http_status,
		       sum(attempts) AS attempts,
		       min(first_seen) AS first_seen,
		       max(last_seen) AS last_seen,
		       (array_agg(error ORDER BY last_seen DESC))[1] AS error
		  FROM subscription_errors
		 WHERE subscription_uid = ANY ($1::uuid[])
		   AND hour BETWEEN $2 AND $3
		   AND attempts > 0
		 GROUP BY subscription_uid, error_class, http_status
		 ORDER BY last_seen DESC, error_class, http_status`, keysOf(found), first, last)
	if err != nil {
		return fmt.Errorf("reading the errors of subscriptions: %w", err)
	}
	for _, row := range rows {
		health := found[row.Subscription]
		health.Errors = append(health.Errors, ErrorGroup{
			Class: row.Class, Status: row.Status, Count: row.Count,
			First: row.First, Last: row.Last, Error: row.Error,
		})
	}
	return nil
}

func (s *Service) readStreaks(ctx context.Context, found map[uuid.UUID]*Health) error {
	var rows []streak
	err := s.DB.SelectContext(ctx, &rows, `
		SELECT `+streakColumns+`
		  FROM subscription_health
		 WHERE subscription_uid = ANY ($1::uuid[])`, keysOf(found))
	if err != nil {
		return fmt.Errorf("reading the health of subscriptions: %w", err)
	}
	for _, row := range rows {
		health := found[row.Subscription]
		health.LastSuccess, health.LastFailure = row.LastSuccess, row.LastFailure
		health.FailingSince, health.ConsecutiveFailures = row.Since, row.Failures
		health.LastStatus, health.LastError = postgres.OrZero(row.LastStatus), row.LastError
		if row.LastClass != nil {
			health.LastClass = sender.ErrorClass(*row.LastClass)
		}
	}
	return nil
}
