package processes

import (
	"context"
	"fmt"
	"time"

	"github.com/lib/pq"

	"drawbridge/migrations"
)

// Report is the state of the whole of Drawbridge.
type Report struct {
	Processes []Process
	// Leader is the worker that enqueues the periodic jobs, empty if there is none.
	Leader     string
	Database   Database
	Partitions []Partition
	Queues     []Queue
	Chores     []Chore
	Migrations []migrations.Step
}

// Database is the state of the server.
type Database struct {
	Version string `db:"version"`
	// Bytes is the size of the database.
	Bytes int64 `db:"bytes"`
	// Connections counts the connections of every client to this database.
	Connections    int `db:"connections"`
	MaxConnections int `db:"max_connections"`
	// OldestTransaction is when the longest open transaction began, nil without one.
	OldestTransaction *time.Time `db:"oldest_transaction"`
	// Now is the server's clock.
	Now time.Time `db:"now"`
}

// Partition is a partition of a large table.
type Partition struct {
	Table string `db:"parent"`
	Name  string `db:"name"`
	Bytes int64  `db:"bytes"`
	// Rows is the estimate of the statistics, -1 before the first one.
	Rows int64 `db:"rows"`
}

// Queue is one queue of jobs.
type Queue struct {
	Name      string `db:"queue"`
	Waiting   int    `db:"waiting"`
	Running   int    `db:"running"`
	Scheduled int    `db:"scheduled"`
	// Oldest is when the longest waiting job became due, nil if none waits.
	Oldest *time.Time `db:"oldest"`
}

// Chore is a periodic job.
type Chore struct {
	Kind string `db:"kind"`
	// LastDone and LastFailed are nil when there was no such run in the time for which the queue keeps
	// its jobs: a day, and a week for failures.
	LastDone   *time.Time `db:"last_done"`
	LastFailed *time.Time `db:"last_failed"`
	// Open counts its waiting and running jobs.
	Open int `db:"open"`
}

// Chores are the kinds of the periodic jobs.
var Chores = []string{
	"housekeep", "retain", "tally_outcomes", "watch_health", "probe_endpoints", "resume_mail",
	"freeze_statements",
}

// Report reads everything; it changes nothing.
func (s *Service) Report(ctx context.Context) (Report, error) {
	var report Report
	var leaders []string
	var databases []Database // always one
	for _, part := range []struct {
		doing     string
		into      any
		statement string
		args      []any
	}{
		{"listing the processes", &report.Processes, listProcesses, nil},
		{"reading the leader", &leaders, readLeader, nil},
		{"reading the state of the database", &databases, readDatabase, nil},
		{"listing the partitions", &report.Partitions, listPartitions, nil},
		{"reading the queues", &report.Queues, readQueues, nil},
		{"reading the chores", &report.Chores, readChores, []any{pq.StringArray(Chores)}},
	} {
		if err := s.DB.SelectContext(ctx, part.into, part.statement, part.args...); err != nil {
			return Report{}, fmt.Errorf("%s: %w", part.doing, err)
		}
	}
	if len(leaders) > 0 {
		report.Leader = leaders[0]
	}
	report.Database = databases[0]
	var err error
	report.Migrations, err = migrations.Status(ctx, s.DB.DB.DB)
	return report, err
}

// The statements of a report.
const (
	listProcesses = `
		SELECT process_uid, host, pid, roles, version, started_at, last_beat_at, skew_us
		  FROM processes
		 ORDER BY started_at, process_uid`
	readLeader = `
		SELECT leader_id
		  FROM river_leader
		 WHERE expires_at > now()
		 LIMIT 1`
	readDatabase = `
		SELECT current_setting('server_version') AS version,
		       pg_database_size(current_database()) AS bytes,
		       count(*) AS connections,
		       current_setting('max_connections')::integer AS max_connections,
		       min(xact_start) FILTER (WHERE pid <> pg_backend_pid()) AS oldest_transaction,
		       clock_timestamp() AS now
		  FROM pg_stat_activity
		 WHERE datname = current_database()`
	listPartitions = `
		SELECT p.relname AS parent,
		       c.relname AS name,
		       pg_total_relation_size(c.oid) AS bytes,
		       c.reltuples::bigint AS rows
		  FROM pg_inherits i
		  JOIN pg_class p ON p.oid = i.inhparent
		  JOIN pg_class c ON c.oid = i.inhrelid
		 WHERE p.relkind = 'p'
		   AND p.relnamespace = 'public'::regnamespace
		 ORDER BY p.relname, c.relname`
	readQueues = `
		SELECT queue,
		       count(*) FILTER (WHERE state IN ('available', 'retryable')) AS waiting,
		       count(*) FILTER (WHERE state = 'running') AS running,
		       count(*) FILTER (WHERE state IN ('scheduled', 'pending')) AS scheduled,
		       min(scheduled_at) FILTER (WHERE state = 'available') AS oldest
		  FROM river_job
		 WHERE state IN ('available', 'retryable', 'running', 'scheduled', 'pending')
		 GROUP BY queue
		 ORDER BY queue`
	readChores = `
		SELECT k.kind,
		       max(j.finalized_at) FILTER (WHERE j.state = 'completed') AS last_done,
		       max(j.finalized_at) FILTER (WHERE j.state IN ('discarded', 'cancelled'))
		           AS last_failed,
		       count(*) FILTER (WHERE j.state IN ('available', 'running', 'retryable')) AS open
		  FROM unnest($1::text[]) WITH ORDINALITY AS k (kind, place)
		  LEFT JOIN river_job j ON j.kind = k.kind
		 GROUP BY k.kind, k.place
		 ORDER BY k.place`
)
