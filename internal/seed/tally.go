package seed

import (
	"context"
	"fmt"
	"strings"

	"github.com/lib/pq"

	"drawbridge/internal/postgres"
	"drawbridge/internal/webhook/health"
)

// ended selects the attempts to the seed's subscriptions as a tally counts them: $1 are the
// bounds of the histograms, in microseconds.
const ended = `
	WITH ended AS MATERIALIZED (
		SELECT d.subscription_uid, a.started_at + a.duration_us * interval '1 microsecond' AS at,
		       a.error_class, a.http_status, a.error, a.error_class IS NULL AS good,
		       a.number = d.attempt_count AND d.state = 'delivered' AS delivered,
		       a.number = d.attempt_count AND d.state = 'failed' AS failed,
		       CASE WHEN a.error_class IS NULL
		            THEN width_bucket(a.duration_us - 1, $1::bigint[]) END AS bucket
		  FROM attempts a
		  JOIN deliveries d ON d.delivery_uid = a.delivery_uid
		                   AND d.created_at = a.delivery_created_at
		  JOIN seed_subscriptions s USING (subscription_uid)
		 WHERE NOT d.test
	)`

// sums are the columns that both kinds of summary compute from ended; %s are the buckets.
const sums = `count(*), count(*) FILTER (WHERE good), count(*) FILTER (WHERE delivered),
	       count(*) FILTER (WHERE failed), ARRAY[%s]`

const tallyHours = ended + `
	INSERT INTO subscription_hours (subscription_uid, hour, attempts, succeeded, delivered, failed,
	                                latency)
	SELECT subscription_uid, date_trunc('hour', at, 'UTC'), ` + sums + `
	  FROM ended
	 GROUP BY 1, 2
	    ON CONFLICT (subscription_uid, hour) DO UPDATE
	   SET attempts = excluded.attempts, succeeded = excluded.succeeded,
	       delivered = excluded.delivered, failed = excluded.failed, latency = excluded.latency`

const tallyErrors = ended + `
	INSERT INTO subscription_errors (subscription_uid, hour, error_class, http_status, attempts,
	                                 first_seen, last_seen, error)
	SELECT subscription_uid, date_trunc('hour', at, 'UTC'), error_class, coalesce(http_status, 0),
	       count(*), min(at), max(at), max(error)
	  FROM ended
	 WHERE NOT good
	 GROUP BY 1, 2, 3, 4
	    ON CONFLICT (subscription_uid, hour, error_class, http_status) DO UPDATE
	   SET attempts = excluded.attempts, first_seen = excluded.first_seen,
	       last_seen = excluded.last_seen`

// tallyMinutes serves the plots of a few hours.
const tallyMinutes = ended + `
	INSERT INTO traffic (unit, start, attempts, succeeded, delivered, failed, latency)
	SELECT 'minute', date_trunc('minute', at, 'UTC'), ` + sums + `
	  FROM ended
	 WHERE at > now() - interval '2 days'
	 GROUP BY 2
	    ON CONFLICT (unit, start) DO NOTHING`

// tallyTraffic sums the hours of all subscriptions, whoever counted them.
const tallyTraffic = `
	INSERT INTO traffic (unit, start, attempts, succeeded, delivered, failed, latency)
	SELECT 'hour', h.hour, h.attempts, h.succeeded, h.delivered, h.failed, l.latency
	  FROM (SELECT hour, sum(attempts) AS attempts, sum(succeeded) AS succeeded,
	               sum(delivered) AS delivered, sum(failed) AS failed
	          FROM subscription_hours GROUP BY hour) h
	  JOIN (SELECT hour, array_agg(counted::integer ORDER BY bucket) AS latency
	          FROM (SELECT hour, bucket, sum(count) AS counted
	                  FROM subscription_hours, unnest(latency) WITH ORDINALITY AS u (count, bucket)
	                 GROUP BY hour, bucket) buckets
	         GROUP BY hour) l USING (hour)
	    ON CONFLICT (unit, start) DO UPDATE
	   SET attempts = excluded.attempts, succeeded = excluded.succeeded,
	       delivered = excluded.delivered, failed = excluded.failed, latency = excluded.latency`

// tallyStreaks writes the runs of failures since each subscription's last success.
const tallyStreaks = ended + `, succeeded AS (
		SELECT subscription_uid, max(at) FILTER (WHERE good) AS at FROM ended GROUP BY 1
	), last AS (
		SELECT DISTINCT ON (subscription_uid) subscription_uid, at, http_status, error_class, error
		  FROM ended
		 WHERE NOT good
		 ORDER BY subscription_uid, at DESC
	), streak AS (
		SELECT e.subscription_uid, min(e.at) AS since, count(*) AS failures
		  FROM ended e
		  JOIN succeeded s USING (subscription_uid)
		 WHERE NOT e.good AND (s.at IS NULL OR e.at > s.at)
		 GROUP BY 1
	)
	INSERT INTO subscription_health (subscription_uid, last_success_at, last_failure_at,
	                                 last_http_status, last_error_class, last_error, failing_since,
	                                 failures)
	SELECT s.subscription_uid, s.at, l.at, l.http_status, l.error_class, coalesce(l.error, ''),
	       k.since, coalesce(k.failures, 0)
	  FROM succeeded s
	  LEFT JOIN last l USING (subscription_uid)
	  LEFT JOIN streak k USING (subscription_uid)
	    ON CONFLICT (subscription_uid) DO NOTHING`

// settleProbes keeps the prober from probing made-up addresses.
const settleProbes = `
	INSERT INTO probes (subscription_uid, next_at)
	SELECT subscription_uid, now() + interval '10 years' FROM seed_subscriptions
	    ON CONFLICT DO NOTHING`

// tally fills the summaries that lists, plots and alerts read, as if each attempt had been
// counted when it ended.
func tally(ctx context.Context, tx *postgres.Tx) error {
	lengths := health.Bounds()
	micros, buckets := make(pq.Int64Array, len(lengths)), make([]string, len(lengths)+1)
	for i := range buckets {
		buckets[i] = fmt.Sprintf("count(*) FILTER (WHERE bucket = %d)", i)
		if i < len(lengths) {
			micros[i] = lengths[i].Microseconds()
		}
	}
	counted := strings.Join(buckets, ", ")
	return run(ctx, tx, []step{
		{"hours", fmt.Sprintf(tallyHours, counted), []any{micros}},
		{"errors", tallyErrors, []any{micros}},
		{"minutes", fmt.Sprintf(tallyMinutes, counted), []any{micros}},
		{"traffic", tallyTraffic, nil},
		{"streaks", tallyStreaks, []any{micros}},
		{"probes", settleProbes, nil},
	}...)
}
