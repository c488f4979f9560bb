// Package queue reads and steers the job queues: how deep each is and how old
// its oldest job, which jobs failed and why, pausing and resuming a queue,
// retrying and cancelling a job.
//
// The tables belong to the queue's library, whose indexes the statements here
// follow; changes go through the library in the caller's transaction, so that
// they commit with their entry in the audit log. Jobs only wake workers: what
// became of a delivery or an e-mail stands in its own tables.
package queue

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
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
	// Jobs changes queues and jobs.
	Jobs *river.Client[*sql.Tx]
	// Names are the queues that exist even before a process has worked them.
	Names []string
}

// State is where a job stands.
type State string

// The states that a job can stay in. Completed ones are not listed: the tables
// of what they did tell more, for longer.
const (
	StateAvailable State = "available"
	StateRunning   State = "running"
	StateRetryable State = "retryable"
	StateScheduled State = "scheduled"
	StateCancelled State = "cancelled"
	StateDiscarded State = "discarded"
)

// States lists the states, what needs a human first.
func States() []State {
	return []State{
		StateDiscarded, StateRetryable, StateRunning, StateAvailable, StateScheduled,
		StateCancelled,
	}
}

// Queue is one queue as it is now.
type Queue struct {
	Name string
	// PausedAt is nil while the queue is worked.
	PausedAt *time.Time
	// SeenAt is when a process last worked the queue; nil when none does.
	SeenAt *time.Time
	// Depth counts the jobs of each state, up to one more than MaxCount.
	Depth map[State]int
	// Oldest is since when the oldest job has been due; nil without one.
	Oldest *time.Time
}

// Queues lists every queue by name.
func (s *Service) Queues(ctx context.Context) ([]Queue, error) {
	var rows []struct {
		Name     string     `db:"name"`
		PausedAt *time.Time `db:"paused_at"`
		SeenAt   *time.Time `db:"updated_at"`
		Oldest   *time.Time `db:"oldest"`
		Counts   []byte     `db:"counts"`
	}
	// Each count stops at its bound, and each subquery follows the index by
	// state, queue, priority and time: the page stays quick over a backlog.
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
		 ORDER BY names.name`, pq.Array(s.Names), pq.Array(States()), MaxCount+1)
	if err != nil {
		return nil, fmt.Errorf("listing the queues: %w", err)
	}
	queues := make([]Queue, 0, len(rows))
	for _, row := range rows {
		queue := Queue{
			Name: row.Name, PausedAt: row.PausedAt, SeenAt: row.SeenAt, Oldest: row.Oldest,
		}
		if err := json.Unmarshal(row.Counts, &queue.Depth); err != nil {
			return nil, fmt.Errorf("reading the depth of queue %s: %w", row.Name, err)
		}
		queues = append(queues, queue)
	}
	return queues, nil
}

// Pause keeps every process from taking jobs of a queue; those that run go on.
// Error: NOT_FOUND for a queue that nobody has worked yet.
func (s *Service) Pause(ctx context.Context, tx *postgres.Tx, name string) error {
	return s.steer(name, "pausing", func() error {
		return s.Jobs.QueuePauseTx(ctx, tx.Tx.Tx, name, nil)
	})
}

// Resume lets a paused queue go on. Error: NOT_FOUND.
func (s *Service) Resume(ctx context.Context, tx *postgres.Tx, name string) error {
	return s.steer(name, "resuming", func() error {
		return s.Jobs.QueueResumeTx(ctx, tx.Tx.Tx, name, nil)
	})
}

func (s *Service) steer(name, doing string, use func() error) error {
	// The library takes "*" for every queue, which no page offers.
	if name == "" || name == "*" {
		return lending.NewError(lending.CodeNotFound, "no queue is called %q", name)
	}
	err := use()
	if errors.Is(err, river.ErrNotFound) {
		return lending.NewError(lending.CodeNotFound,
			"no process works a queue called %q; start a worker first", name)
	}
	if err != nil {
		return fmt.Errorf("%s queue %s: %w", doing, name, err)
	}
	return nil
}

// Job is one job as it is now.
type Job struct {
	ID          int64      `db:"id"`
	Kind        string     `db:"kind"`
	Queue       string     `db:"queue"`
	State       State      `db:"state"`
	Attempt     int        `db:"attempt"`
	MaxAttempts int        `db:"max_attempts"`
	CreatedAt   time.Time  `db:"created_at"`
	ScheduledAt time.Time  `db:"scheduled_at"`
	AttemptedAt *time.Time `db:"attempted_at"`
	FinalizedAt *time.Time `db:"finalized_at"`
	// Args are JSON: the ids of what the job is about.
	Args []byte `db:"args"`
	// Failures are the attempts that failed, the last one last.
	Failures Failures `db:"errors"`
}

// Failure is an attempt of a job that failed.
type Failure struct {
	At      time.Time `json:"at"`
	Attempt int       `json:"attempt"`
	Error   string    `json:"error"`
}

// Failures are read from the array of JSON that the library keeps.
type Failures []Failure

// Scan reads the library's column.
func (f *Failures) Scan(value any) error {
	var texts pq.StringArray
	if err := texts.Scan(value); err != nil {
		return err
	}
	*f = make(Failures, 0, len(texts))
	for _, text := range texts {
		var failure Failure
		if err := json.Unmarshal([]byte(text), &failure); err != nil {
			return err
		}
		*f = append(*f, failure)
	}
	return nil
}

// Last is the error of the last failure; empty without one.
func (f Failures) Last() string {
	if len(f) == 0 {
		return ""
	}
	return f[len(f)-1].Error
}

const jobColumns = `
	id, kind, queue, state, attempt, max_attempts, created_at, scheduled_at, attempted_at,
	finalized_at, args, errors`

// JobFilter selects jobs.
type JobFilter struct {
	State State
	// Queue is empty for all.
	Queue string
	// Before is the id of the last job of the page before.
	Before int64
	// Limit is the most jobs to return.
	Limit int
}

// List lists jobs, the newest first, and tells whether there are more.
func (s *Service) List(ctx context.Context, filter JobFilter) ([]Job, bool, error) {
	where, args := `state = $1::river_job_state`, []any{string(filter.State)}
	if filter.Queue != "" {
		args = append(args, filter.Queue)
		where += ` AND queue = $` + strconv.Itoa(len(args))
	}
	if filter.Before > 0 {
		args = append(args, filter.Before)
		where += ` AND id < $` + strconv.Itoa(len(args))
	}
	var jobs []Job
	err := s.DB.SelectContext(ctx, &jobs, `SELECT `+jobColumns+` FROM river_job
		 WHERE `+where+` ORDER BY id DESC LIMIT `+strconv.Itoa(filter.Limit+1), args...)
	if err != nil {
		return nil, false, fmt.Errorf("listing jobs: %w", err)
	}
	if len(jobs) > filter.Limit {
		return jobs[:filter.Limit], true, nil
	}
	return jobs, false, nil
}

// Job returns one job. Error: NOT_FOUND, also for one that was cleared away.
func (s *Service) Job(ctx context.Context, id int64) (Job, error) {
	var job Job
	err := s.DB.GetContext(ctx, &job, `SELECT `+jobColumns+` FROM river_job WHERE id = $1`, id)
	if postgres.IsNoRows(err) {
		return Job{}, lending.NewError(lending.CodeNotFound,
			"there is no job %d; jobs that have ended are cleared away", id)
	}
	if err != nil {
		return Job{}, fmt.Errorf("loading job %d: %w", id, err)
	}
	return job, nil
}

// Retry lets a job that failed or was cancelled run at once. Errors: NOT_FOUND,
// INVALID_STATE for one that runs, waits its turn or is done.
func (s *Service) Retry(ctx context.Context, tx *postgres.Tx, id int64) error {
	if err := lockJob(ctx, tx, id, retryStates, "retried"); err != nil {
		return err
	}
	if _, err := s.Jobs.JobRetryTx(ctx, tx.Tx.Tx, id); err != nil {
		return fmt.Errorf("retrying job %d: %w", id, err)
	}
	return nil
}

// Cancel ends a job that is not done. One that runs is asked to stop. Errors:
// NOT_FOUND, INVALID_STATE for one that is done.
func (s *Service) Cancel(ctx context.Context, tx *postgres.Tx, id int64) error {
	if err := lockJob(ctx, tx, id, cancelStates, "cancelled"); err != nil {
		return err
	}
	if _, err := s.Jobs.JobCancelTx(ctx, tx.Tx.Tx, id); err != nil {
		return fmt.Errorf("cancelling job %d: %w", id, err)
	}
	return nil
}

var (
	retryStates  = []State{StateRetryable, StateScheduled, StateCancelled, StateDiscarded}
	cancelStates = []State{StateAvailable, StateRunning, StateRetryable, StateScheduled}
)

// CanRetry tells whether Retry takes the job.
func (j Job) CanRetry() bool { return slices.Contains(retryStates, j.State) }

// CanCancel tells whether Cancel takes the job.
func (j Job) CanCancel() bool { return slices.Contains(cancelStates, j.State) }

// lockJob keeps a job where it is and refuses when that is none of the states.
func lockJob(
	ctx context.Context, tx *postgres.Tx, id int64, from []State, done string,
) error {
	var state State
	err := tx.GetContext(ctx, &state, `SELECT state FROM river_job WHERE id = $1 FOR UPDATE`, id)
	if postgres.IsNoRows(err) {
		return lending.NewError(lending.CodeNotFound, "there is no job %d", id)
	}
	if err != nil {
		return fmt.Errorf("locking job %d: %w", id, err)
	}
	if !slices.Contains(from, state) {
		return lending.NewError(lending.CodeInvalidState,
			"job %d is %s now and cannot be %s", id, state, done)
	}
	return nil
}

// Change is a use case that changes one job.
type Change = func(ctx context.Context, tx *postgres.Tx, id int64) error
