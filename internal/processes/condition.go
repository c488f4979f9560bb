package processes

import (
	"context"
	"fmt"
	"time"
)

// Condition is what degrades a running installation unnoticed, as read from its database.
type Condition struct {
	// Workers is the number of live processes that work the queues.
	Workers int `db:"workers"`
	// PartitionsAhead is for how many months beyond the current one events, deliveries and attempts
	// have partitions; -1 while the current month lacks one.
	PartitionsAhead int `db:"partitions_ahead"`
	// Transaction is the longest open transaction in this database, zero for none.
	Transaction
	// XIDAge is how many transactions ago, out of a limit of two thousand million, the oldest row of
	// the server's databases was last frozen.
	XIDAge int64 `db:"xid_age"`
	// BackedUpAt is when a backup was last recorded, else when the database was first served; nil
	// before that.
	BackedUpAt *time.Time `db:"backed_up_at"`
	// Recorded reports whether a backup was ever recorded.
	Recorded bool `db:"recorded"`
	// ArchiveFailing reports that the server archives its write-ahead log and last failed to.
	ArchiveFailing bool `db:"archive_failing"`
	// Now is the server's clock.
	Now time.Time `db:"now"`
}

// Transaction is an open transaction.
type Transaction struct {
	// Seconds is how long it has been open.
	Seconds float64 `db:"transaction_seconds"`
	// PID is its server process, 0 for a prepared transaction.
	PID int `db:"transaction_pid"`
	// Holder describes its session and statement, or is the name of a prepared transaction.
	Holder string `db:"transaction_holder"`
}

// Condition reads the condition; it changes nothing.
func (s *Service) Condition(ctx context.Context) (Condition, error) {
	var found Condition
	err := s.DB.GetContext(ctx, &found, `
		WITH open AS (
			SELECT pid, xact_start AS since,
			       concat_ws(', ', usename, nullif(application_name, ''), client_addr, state,
			                 left(regexp_replace(query, '\s+', ' ', 'g'), 60)) AS holder
			  FROM pg_stat_activity
			 WHERE datname = current_database()
			   AND backend_type = 'client backend'
			   AND pid <> pg_backend_pid()
			   AND xact_start IS NOT NULL
			 UNION ALL
			SELECT 0, prepared, gid FROM pg_prepared_xacts WHERE database = current_database()
			 ORDER BY since
			 LIMIT 1
		)
		SELECT (SELECT count(*)
		          FROM processes
		         WHERE 'worker' = ANY (roles)
		           AND last_beat_at > now() - make_interval(secs => $1)) AS workers,
		       (SELECT coalesce(min(month), 13) - 1
		          FROM generate_series(0, 12) AS month,
		               unnest(ARRAY['events', 'deliveries', 'attempts']) AS parent
		         WHERE to_regclass(parent || to_char(
		                   date_trunc('month', now() AT TIME ZONE 'UTC')
		                     + make_interval(months => month),
		                   '"_y"YYYY"m"MM')) IS NULL) AS partitions_ahead,
		       coalesce(extract(epoch FROM now() - open.since), 0) AS transaction_seconds,
		       coalesce(open.pid, 0) AS transaction_pid,
		       coalesce(open.holder, '') AS transaction_holder,
		       (SELECT max(greatest(age(datfrozenxid), mxid_age(datminmxid)))
		          FROM pg_database) AS xid_age,
		       (SELECT coalesce(backed_up_at, recorded_at) FROM installation) AS backed_up_at,
		       EXISTS (SELECT FROM installation WHERE backed_up_at IS NOT NULL) AS recorded,
		       coalesce((SELECT last_failed_time > coalesce(last_archived_time, '-infinity')
		                   FROM pg_stat_archiver), false)
		         AND current_setting('archive_mode') <> 'off' AS archive_failing,
		       now() AS now
		  FROM (VALUES (1)) AS one
		  LEFT JOIN open ON true`, Lost.Seconds())
	if err != nil {
		return Condition{}, fmt.Errorf("reading the condition of the database: %w", err)
	}
	return found, nil
}
