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

// tally sums outcomes for one row of a summary.
type tally struct {
	attempts, succeeded, delivered, failed int64
	latency                                Histogram
}

func (t *tally) add(row outcomeRow) {
	t.attempts += int64(row.Attempts)
	t.delivered += int64(row.Delivered)
	t.failed += int64(row.Failed)
	if row.Class == "" && row.Attempts != 0 {
		t.succeeded += int64(row.Attempts)
		t.latency.Observe(time.Duration(row.DurationUS)*time.Microsecond, row.Attempts)
	}
}

// sums groups outcomes by a key, in the order in which the keys first occur.
type sums[K comparable] struct {
	keys  []K
	byKey map[K]*tally
}

func sumBy[K comparable](rows []outcomeRow, key func(outcomeRow) K) sums[K] {
	grouped := sums[K]{byKey: make(map[K]*tally)}
	for _, row := range rows {
		k := key(row)
		if grouped.byKey[k] == nil {
			grouped.keys = append(grouped.keys, k)
			grouped.byKey[k] = new(tally)
		}
		grouped.byKey[k].add(row)
	}
	return grouped
}

func hourOf(at time.Time) time.Time { return at.UTC().Truncate(time.Hour) }

// stamp formats a time for an array parameter.
func stamp(at time.Time) string { return at.UTC().Format(time.RFC3339Nano) }

// hourKey is one hour of one subscription.
type hourKey struct {
	subscription uuid.UUID
	hour         time.Time
}

func addHours(ctx context.Context, tx *postgres.Tx, rows []outcomeRow) error {
	grouped := sumBy(rows, func(row outcomeRow) hourKey {
		return hourKey{row.Subscription, hourOf(row.EndedAt)}
	})
	var uids, hours pq.StringArray
	for _, key := range grouped.keys {
		uids, hours = append(uids, key.subscription.String()), append(hours, stamp(key.hour))
	}
	to := summary{"subscription_hours", "subscription_uid", "hour", "uuid"}
	return addCounts(ctx, tx, grouped, to, [2]pq.StringArray{uids, hours})
}

// addTraffic adds to the per-minute and per-hour traffic of all subscriptions together.
func addTraffic(ctx context.Context, tx *postgres.Tx, rows []outcomeRow) error {
	for unit, length := range map[string]time.Duration{"minute": time.Minute, "hour": time.Hour} {
		grouped := sumBy(rows, func(row outcomeRow) time.Time {
			return row.EndedAt.UTC().Truncate(length)
		})
		var units, starts pq.StringArray
		for _, start := range grouped.keys {
			units, starts = append(units, unit), append(starts, stamp(start))
		}
		to := summary{"traffic", "unit", "start", "text"}
		if err := addCounts(ctx, tx, grouped, to, [2]pq.StringArray{units, starts}); err != nil {
			return err
		}
	}
	return nil
}

// summary names a summary table, the two columns of its key, and the type of the first.
type summary struct{ table, of, start, kind string }

// addCounts adds sums to the rows of a summary; keys has the two key columns as arrays.
func addCounts[K comparable](
	ctx context.Context, tx *postgres.Tx, grouped sums[K], to summary, keys [2]pq.StringArray,
) error {
	var counts [4]pq.Int64Array
	var latency pq.StringArray
	for _, key := range grouped.keys {
		one := grouped.byKey[key]
		counts[0] = append(counts[0], one.attempts)
		counts[1] = append(counts[1], one.succeeded)
		counts[2] = append(counts[2], one.delivered)
		counts[3] = append(counts[3], one.failed)
		latency = append(latency, one.latency.text())
	}
	_, err := tx.ExecContext(ctx, `
		INSERT INTO `+to.table+` AS t (`+to.of+`, `+to.start+`, attempts, succeeded, delivered,
		                               failed, latency)
		SELECT key, start, attempts, succeeded, delivered, failed, latency::integer[]
		  FROM unnest($1::`+to.kind+`[], $2::timestamptz[], $3::integer[], $4::integer[],
		              $5::integer[], $6::integer[], $7::text[])
		    AS u (key, start, attempts, succeeded, delivered, failed, latency)
		    ON CONFLICT (`+to.of+`, `+to.start+`) DO UPDATE
		   SET attempts = t.attempts + excluded.attempts,
		       succeeded = t.succeeded + excluded.succeeded,
		       delivered = t.delivered + excluded.delivered,
		       failed = t.failed + excluded.failed,
		       latency = drawbridge_add(t.latency, excluded.latency)`,
		keys[0], keys[1], counts[0], counts[1], counts[2], counts[3], latency)
	if err != nil {
		return fmt.Errorf("adding to %s: %w", to.table, err)
	}
	return nil
}

// errorKey is a kind of failure in one hour of one subscription.
type errorKey struct {
	hourKey
	class  sender.ErrorClass
	status int
}

// errorSum is how often a kind of failure occurred, and when.
type errorSum struct {
	attempts    int64
	first, last time.Time
	text        string
}

func (e *errorSum) add(row outcomeRow) {
	e.attempts += int64(row.Attempts)
	if e.first.IsZero() || row.EndedAt.Before(e.first) {
		e.first = row.EndedAt
	}
	if !row.EndedAt.Before(e.last) {
		e.last, e.text = row.EndedAt, row.Error
	}
}

func addErrors(ctx context.Context, tx *postgres.Tx, rows []outcomeRow) error {
	found := make(map[errorKey]*errorSum)
	for _, row := range rows {
		if row.Class == "" || row.Attempts == 0 {
			continue
		}
		key := errorKey{
			hourKey{row.Subscription, hourOf(row.EndedAt)}, row.Class, postgres.OrZero(row.Status),
		}
		if found[key] == nil {
			found[key] = new(errorSum)
		}
		found[key].add(row)
	}
	if len(found) == 0 {
		return nil
	}
	var uids, hours, classes, firsts, lasts, texts pq.StringArray
	var statuses, attempts pq.Int64Array
	for key, one := range found {
		uids, hours = append(uids, key.subscription.String()), append(hours, stamp(key.hour))
		classes, statuses = append(classes, string(key.class)), append(statuses, int64(key.status))
		attempts, texts = append(attempts, one.attempts), append(texts, one.text)
		firsts, lasts = append(firsts, stamp(one.first)), append(lasts, stamp(one.last))
	}
	_, err := tx.ExecContext(ctx, `
		INSERT INTO subscription_errors AS e (subscription_uid, hour, error_class, http_status,
		                                      attempts, first_seen, last_seen, error)
		SELECT subscription_uid, hour, error_class, http_status, attempts, first_seen, last_seen,
		       error
		  FROM unnest($1::uuid[], $2::timestamptz[], $3::text[], $4::integer[], $5::integer[],
		              $6::timestamptz[], $7::timestamptz[], $8::text[])
		       AS row (subscription_uid, hour, error_class, http_status, attempts, first_seen,
		               last_seen, error)
		    ON CONFLICT (subscription_uid, hour, error_class, http_status) DO UPDATE
		   SET attempts = e.attempts + excluded.attempts,
		       first_seen = least(e.first_seen, excluded.first_seen),
		       last_seen = greatest(e.last_seen, excluded.last_seen),
		       error = CASE WHEN excluded.last_seen >= e.last_seen THEN excluded.error
		                    ELSE e.error END`,
		uids, hours, classes, statuses, attempts, firsts, lasts, texts)
	if err != nil {
		return fmt.Errorf("adding to the errors of subscriptions: %w", err)
	}
	return nil
}
