// Package queue reads and controls the job queues: their depth and the age of their oldest job,
// pausing and resuming. Single jobs are managed in the queue library's own console.
//
// The tables belong to the library, whose indexes the statement here relies on; changes go through
// the library in the caller's transaction, so that they commit with their entry in the audit log.
// Jobs only wake workers: the outcome of a delivery or an e-mail is in its own tables.
package queue

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/lib/pq"
	"github.com/riverqueue/river"

	"drawbridge/internal/lending"
	"drawbridge/internal/postgres"
)

// MaxCount is the highest number that a depth counts to.
const MaxCount = 10000

// Service serves the job queues.
type Service struct {
	DB *postgres.DB
	// Jobs changes queues.
	Jobs *river.Client[*sql.Tx]
	// Names are the queues that exist even before a process has worked them.
	Names []string
}

// State is the state of a job.
type State string

// The counted states. Completed jobs are not counted: the tables of their work show more, and for
// longer.
const (
	StateAvailable State = "available"
	StateRunning   State = "running"
	StateRetryable State = "retryable"
	StateScheduled State = "scheduled"
	StateDiscarded State = "discarded"
)

var states = []State{StateDiscarded, StateRetryable, StateRunning, StateAvailable, StateScheduled}

// workedWithin is how recently a process must have worked a queue to count as
// working it: they report every ten minutes.
const workedWithin = 15 * time.Minute

// Queue is the current state of a queue.
type Queue struct {
	Name string `db:"name"`
	// PausedAt is nil while the queue is not paused.
	PausedAt *time.Time `db:"paused_at"`
	// SeenAt is when a process last worked the queue; nil for never.
	SeenAt *time.Time `db:"updated_at"`
	// Depth counts the jobs of each state, up to one more than MaxCount.
	Depth map[State]int `db:"-"`
	// Oldest is since when the oldest job has been due; nil if there is none.
	Oldest *time.Time `db:"oldest"`
}

// Worked reports whether a process works the queue.
func (q Queue) Worked(now time.Time) bool {
	return q.SeenAt != nil && now.Sub(*q.SeenAt) < workedWithin
}

// Queues lists every queue by name.
func (s *Service) Queues(ctx context.Context) ([]Queue, error) {
	var rows []struct {
		Queue
		Counts []byte `db:"counts"`
	}
	// Each count stops at its limit, and each subquery follows the index by state, queue, priority and
	// time: the page stays fast with a backlog.
	err := s.DB.SelectContext(ctx, &rows, `
		WITH names AS (SELECT unnest($1::text[]) AS name UNION SELECT name FROM river_queue)
		SELECT names.name, q.paused_at, q.updated_at,
		       (SELECT min(scheduled_at) FROM generate_series(1, 4) AS p,
		               LATERAL (SELECT scheduled_at FROM river_job
		                         WHERE state = 'available' AND queue = names.name AND priority = p
		                         ORDER BY scheduled_at LIMIT 1) AS first) AS oldest,
		       (SELECT json_object_agg(state, (SELECT count(*) FROM (
		                   SELECT 1 FROM river_job
		                    WHERE river_job.state = wanted.state AND queue = names.name
		                    LIMIT $3) AS found))
		          FROM unnest($2::river_job_state[]) AS wanted(state)) AS counts
		  FROM names LEFT JOIN river_queue q ON q.name = names.name
		 ORDER BY names.name`, pq.Array(s.Names), pq.Array(states), MaxCount+1)
	if err != nil {
		return nil, fmt.Errorf("listing the queues: %w", err)
	}
	queues := make([]Queue, 0, len(rows))
	for _, row := range rows {
		if err := json.Unmarshal(row.Counts, &row.Depth); err != nil {
			return nil, fmt.Errorf("reading the depth of queue %s: %w", row.Name, err)
		}
		queues = append(queues, row.Queue)
	}
	return queues, nil
}

// Paused reports whether a queue is paused, and locks that state until the transaction ends.
func (s *Service) Paused(ctx context.Context, tx *postgres.Tx, name string) (bool, error) {
	var paused bool
	err := tx.GetContext(ctx, &paused,
		`SELECT paused_at IS NOT NULL FROM river_queue WHERE name = $1 FOR UPDATE`, name)
	if err != nil && !postgres.IsNoRows(err) {
		return false, fmt.Errorf("asking whether the queue %s is paused: %w", name, err)
	}
	return paused, nil
}

// Pause keeps every process from taking jobs of a queue; running jobs go on.
// Error: NOT_FOUND for a queue that nobody has worked yet.
func (s *Service) Pause(ctx context.Context, tx *postgres.Tx, name string) error {
	return s.steer(ctx, tx, name, "pausing", func() error {
		return s.Jobs.QueuePauseTx(ctx, tx.Tx.Tx, name, nil)
	})
}

// Resume lets a paused queue go on. Error: NOT_FOUND.
func (s *Service) Resume(ctx context.Context, tx *postgres.Tx, name string) error {
	return s.steer(ctx, tx, name, "resuming", func() error {
		return s.Jobs.QueueResumeTx(ctx, tx.Tx.Tx, name, nil)
	})
}

func (s *Service) steer(
	ctx context.Context, tx *postgres.Tx, name, doing string, use func() error,
) error {
	// The library takes "*" for every queue, which no page offers.
	if name == "" || name == "*" {
		return lending.NewError(lending.CodeNotFound, "no queue is called %q", name)
	}
	err := use()
	switch {
	case err == nil:
		return nil
	case !errors.Is(err, river.ErrNotFound):
		return fmt.Errorf("%s queue %s: %w", doing, name, err)
	}
	// Either the queue exists but no process has worked it yet, or there is no such queue.
	var names []string
	err = tx.SelectContext(ctx, &names, `
		SELECT unnest($1::text[]) AS name UNION SELECT name FROM river_queue ORDER BY name`,
		pq.Array(s.Names))
	switch {
	case err != nil:
		return fmt.Errorf("listing the queues: %w", err)
	case slices.Contains(names, name):
		return lending.NewError(lending.CodeNotFound,
			"no process has worked the queue %q yet; start a worker first", name)
	}
	return lending.NewError(lending.CodeNotFound,
		"no queue is called %q; the queues are %s", name, strings.Join(names, ", "))
}
