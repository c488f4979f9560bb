package queue

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river/riverdriver"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivertype"

	"drawbridge/internal/postgres"
)

// Driver is the queue library's driver with its own fetch.
//
// The library scans for jobs from the beginning of its index each time. That is where the entries
// of finished jobs are, which vacuum cannot remove while some transaction stays open. So after
// twenty minutes under load each fetch reads a million of them, hundreds of times a second. This
// one begins where the last fetch found the head of the queue. Jobs that become due behind that are
// looked for concurrently with the fetches, which never wait for it: see ScanBehind.
type Driver struct {
	*riverpgxv5.Driver

	// FetchLost, if set, is called for a fetch that failed, with the times, by the database's clock,
	// between which the queue may have handed out jobs that were not received.
	FetchLost func(queue string, from, until time.Time)
	// Works, if set, reports whether a run of a job is under way in this process.
	Works func(id int64) bool
	// MayFetch, if set, reports whether jobs may be taken over a connection. It is called for each new
	// connection until it returns true: that may lead to another database.
	MayFetch func(ctx context.Context, made *pgx.Conn) (bool, error)

	pool *pgxpool.Pool
	db   *postgres.DB

	mu    sync.Mutex
	heads map[string]*head
	// client is the client that fetches, as named in the jobs; empty before the first fetch.
	client string
}

// head is what is known of the beginning of a queue.
type head struct {
	// from is, for each priority, since when jobs may be due that no fetch has seen.
	from [priorities]time.Time
	// returns counts how often from was set back to jobs found behind it.
	returns int
}

const (
	// priorities is how many priorities there are, from 1 on.
	priorities = 4
	// headSlack is how much later than its time a job may become visible: as long as the transaction
	// that inserts it takes. One that takes longer is found behind the head.
	headSlack = 2 * time.Second
	// scanTimeout bounds a scan behind the heads.
	scanTimeout = time.Minute
	// nearBehind is how far behind the heads the quick scan goes, so that a job that took longer than
	// usual to insert, or was handed back for a dead process, waits for a second.
	nearBehind = 2 * time.Minute
	// farAhead is how far ahead of the clock an available job may be scheduled: the library makes a
	// job that is to run again within five seconds available at once.
	farAhead = 10 * time.Second
)

// NewDriver returns a driver over the pool of a working client of a database.
func NewDriver(pool *pgxpool.Pool, db *postgres.DB) *Driver {
	return &Driver{Driver: riverpgxv5.New(pool), pool: pool, db: db, heads: map[string]*head{}}
}

// GetExecutor returns the library's executor with this driver's fetch.
func (d *Driver) GetExecutor() riverdriver.Executor { return &executor{d.Driver.GetExecutor(), d} }

type executor struct {
	riverdriver.Executor

	driver *Driver
}

// JobGetAvailable takes due jobs of a queue, from its head on; if that is not known, from the
// beginning.
func (e *executor) JobGetAvailable(
	ctx context.Context, params *riverdriver.JobGetAvailableParams,
) ([]*rivertype.JobRow, error) {
	began := e.driver.db.Now()
	var known *head // where the fetch begins, nil for the first
	e.driver.mu.Lock()
	e.driver.client = params.ClientID
	if now := e.driver.heads[params.Queue]; now != nil {
		known = new(*now)
	}
	e.driver.mu.Unlock()
	ctx = context.WithValue(ctx, fetcher{}, e.driver)
	var found []*rivertype.JobRow
	var err error
	if known == nil {
		found, err = e.Executor.JobGetAvailable(ctx, params)
	} else {
		var rows pgx.Rows
		rows, err = e.driver.pool.Query(ctx, fetchFrom, params.Now, params.MaxAttemptedBy,
			params.ClientID, params.Queue, params.MaxToLock, known.from[:])
		if err == nil {
			found, err = pgx.CollectRows(rows, scanJob)
		}
	}
	if errors.Is(err, errFetchForbidden) {
		return nil, nil
	}
	if err != nil {
		if e.driver.FetchLost != nil {
			e.driver.FetchLost(params.Queue, began, e.driver.db.Now())
		}
		return nil, fmt.Errorf("fetching jobs of queue %s: %w", params.Queue, err)
	}
	e.driver.end(params, found, known, began)
	return found, nil
}

// fetchFrom is the library's statement with a time to begin at for each priority, so that it enters
// the index where jobs still wait. A priority is scanned if those before it did not fill the fetch.
// Locked rows are updated by ctid, not by their key: with statistics of an empty queue, the planner
// would read the whole primary key index for that.
const fetchFrom = `
	WITH locked AS (
		SELECT due.place
		  FROM unnest($6::timestamptz[]) WITH ORDINALITY AS head (at, priority),
		       LATERAL (SELECT ctid AS place
		                  FROM river_job
		                 WHERE state = 'available'
		                   AND queue = $4
		                   AND priority = head.priority
		                   AND scheduled_at >= head.at
		                   AND scheduled_at <= coalesce($1::timestamptz, now())
		                 ORDER BY scheduled_at, id
		                 LIMIT $5
		                   FOR UPDATE SKIP LOCKED) AS due
		 LIMIT $5
	)
	UPDATE river_job j
	   SET state = 'running',
	       attempt = j.attempt + 1,
	       attempted_at = coalesce($1::timestamptz, now()),
	       attempted_by = array_append(
	           CASE WHEN cardinality(j.attempted_by) >= $2::integer
	                THEN j.attempted_by[cardinality(j.attempted_by) + 2 - $2::integer:]
	                ELSE j.attempted_by
	           END, $3::text)
	  FROM locked
	 WHERE j.ctid = locked.place
	RETURNING j.id, j.args, j.attempt, j.attempted_at, j.attempted_by, j.created_at, j.errors,
	          j.finalized_at, j.kind, j.max_attempts, j.metadata, j.priority, j.queue,
	          j.state::text, j.scheduled_at, j.tags, j.unique_key`

// JobSetStateIfRunningMany ends the runs of jobs. A delivery's job is gone by then, removed with
// the record of its attempt. Checking first avoids the library's statement, which takes as long for
// a missing job, and longer than everything else in a delivery where many end at once.
//
// A job that another process, or another run here, works now is left to that run: the library
// retries until it gets a result, and a process that was frozen ends its runs late.
func (e *executor) JobSetStateIfRunningMany(
	ctx context.Context, params *riverdriver.JobSetStateIfRunningManyParams,
) ([]*rivertype.JobRow, error) {
	if there, err := e.endable(ctx, e.driver.pool, params.ID, ""); err != nil || len(there) == 0 {
		return nil, err
	}
	tx, err := e.driver.pool.Begin(ctx)
	if err != nil {
		return nil, fmt.Errorf("ending jobs: %w", err)
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }()
	there, err := e.endable(ctx, tx, params.ID, "ORDER BY id FOR UPDATE")
	if err != nil || len(there) == 0 {
		return nil, err
	}
	var at []int
	for _, id := range there {
		at = append(at, slices.Index(params.ID, id))
	}
	ended, err := e.driver.UnwrapExecutor(tx).JobSetStateIfRunningMany(ctx,
		&riverdriver.JobSetStateIfRunningManyParams{
			ID: there, Attempt: pick(params.Attempt, at), ErrData: pick(params.ErrData, at),
			FinalizedAt: pick(params.FinalizedAt, at), MetadataDoMerge: pick(params.MetadataDoMerge, at),
			MetadataUpdates: pick(params.MetadataUpdates, at), Now: params.Now,
			ScheduledAt: pick(params.ScheduledAt, at), Schema: params.Schema,
			State: pick(params.State, at),
		})
	if err == nil {
		err = tx.Commit(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("ending jobs: %w", err)
	}
	return ended, nil
}

// endable returns those of the jobs that exist and do not run elsewhere.
func (e *executor) endable(ctx context.Context, on interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}, ids []int64, lock string,
) ([]int64, error) {
	e.driver.mu.Lock()
	client := e.driver.client
	e.driver.mu.Unlock()
	rows, err := on.Query(ctx, `
		SELECT id
		  FROM river_job
		 WHERE id = ANY ($1)
		   AND (state <> 'running'
		        OR $2 = attempted_by[array_upper(attempted_by, 1)]) `+lock, ids, client)
	if err != nil {
		return nil, fmt.Errorf("looking for ended jobs: %w", err)
	}
	there, err := pgx.CollectRows(rows, pgx.RowTo[int64])
	if err != nil {
		return nil, fmt.Errorf("looking for ended jobs: %w", err)
	}
	return slices.DeleteFunc(there, func(id int64) bool {
		return e.driver.Works != nil && e.driver.Works(id)
	}), nil
}

// LeaderResign gives the leadership up. If the database does not answer in time, it does not try
// again: the lease ends by itself, and the stopping process would wait for nothing.
func (e *executor) LeaderResign(
	ctx context.Context, params *riverdriver.LeaderResignParams,
) (bool, error) {
	resigned, err := e.Executor.LeaderResign(ctx, params)
	if errors.Is(err, context.DeadlineExceeded) {
		slog.WarnContext(ctx, "the leadership of the queues is left to run out", "error", err)
		return false, nil
	}
	return resigned, err
}

func pick[T any](values []T, at []int) []T {
	picked := make([]T, len(at))
	for i, place := range at {
		picked[i] = values[place]
	}
	return picked
}

func scanJob(row pgx.CollectableRow) (*rivertype.JobRow, error) {
	var job rivertype.JobRow
	var errs [][]byte
	var state string
	err := row.Scan(&job.ID, &job.EncodedArgs, &job.Attempt, &job.AttemptedAt, &job.AttemptedBy,
		&job.CreatedAt, &errs, &job.FinalizedAt, &job.Kind, &job.MaxAttempts, &job.Metadata,
		&job.Priority, &job.Queue, &state, &job.ScheduledAt, &job.Tags, &job.UniqueKey)
	if err != nil {
		return nil, err
	}
	job.State = rivertype.JobState(state)
	job.Errors = make([]rivertype.AttemptError, len(errs))
	for i, problem := range errs {
		if err := json.Unmarshal(problem, &job.Errors[i]); err != nil {
			return nil, fmt.Errorf("reading an error of job %d: %w", job.ID, err)
		}
	}
	return &job, nil
}

// end records what a fetch that began at a head has found. If it was full, the head of its last
// priority is the time of its first job there, and later priorities were not scanned. A priority
// that was scanned to its end has its head at the beginning of the fetch, which saw nothing that
// came later, however long it took.
func (d *Driver) end(
	params *riverdriver.JobGetAvailableParams, found []*rivertype.JobRow, from *head, began time.Time,
) {
	last := priorities + 1
	if len(found) >= params.MaxToLock {
		last = 0
		for _, job := range found {
			last = max(last, job.Priority)
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	known := d.heads[params.Queue]
	if known == nil {
		known = new(head)
		d.heads[params.Queue] = known
	}
	if from != nil && from.returns != known.returns {
		return // it did not see the jobs found behind it meanwhile
	}
	for priority := 1; priority <= min(last, priorities); priority++ {
		first := began
		for _, job := range found {
			if priority == last && job.Priority == last && job.ScheduledAt.Before(first) {
				first = job.ScheduledAt
			}
		}
		known.from[priority-1] = first.Add(-headSlack)
	}
}

// ScanBehind scans for jobs older than the heads, handed back or inserted by a long transaction,
// until ctx ends, and has the next fetches begin at them. It also calls hasten.
func (d *Driver) ScanBehind(ctx context.Context) {
	var looking sync.WaitGroup
	for _, far := range []time.Duration{nearBehind, math.MaxInt64} {
		looking.Go(func() {
			postgres.PollThrottled(ctx, "older jobs", func(ctx context.Context) error {
				return d.scanBehind(ctx, far)
			})
		})
	}
	looking.Go(func() { postgres.PollThrottled(ctx, "jobs ahead of the clock", d.hasten) })
	looking.Wait()
}

// hasten makes jobs run now that were due when they were made, by a clock that has since been set
// back.
func (d *Driver) hasten(ctx context.Context) error {
	d.mu.Lock()
	queues := slices.Collect(maps.Keys(d.heads))
	d.mu.Unlock()
	_, err := d.pool.Exec(ctx, `
		WITH ahead AS (
			SELECT due.place
			  FROM unnest($1::text[]) AS of (queue),
			       generate_series(1, $2::integer) AS level (priority),
			       LATERAL (SELECT ctid AS place
			                  FROM river_job
			                 WHERE state = 'available'
			                   AND queue = of.queue
			                   AND priority = level.priority
			                   AND scheduled_at > now() + $3::interval
			                   FOR UPDATE SKIP LOCKED) AS due
		)
		UPDATE river_job j
		   SET scheduled_at = now()
		  FROM ahead
		 WHERE j.ctid = ahead.place`, queues, priorities, farAhead)
	return err
}

type older struct {
	Queue    string
	Priority int
	At       time.Time
}

func (d *Driver) scanBehind(ctx context.Context, far time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, scanTimeout)
	defer cancel()
	var queues []string
	var levels []int
	var from, until []time.Time
	d.mu.Lock()
	for queue, known := range d.heads {
		for i, at := range known.from {
			queues, levels = append(queues, queue), append(levels, i+1)
			from, until = append(from, at.Add(-far)), append(until, at)
		}
	}
	d.mu.Unlock()
	rows, err := d.pool.Query(ctx, `
		SELECT head.queue, head.priority, behind.scheduled_at
		  FROM unnest($1::text[], $2::integer[], $3::timestamptz[], $4::timestamptz[])
		           AS head (queue, priority, behind, at),
		       LATERAL (SELECT scheduled_at
		                  FROM river_job
		                 WHERE state = 'available'
		                   AND queue = head.queue
		                   AND priority = head.priority
		                   AND scheduled_at >= head.behind
		                   AND scheduled_at < head.at
		                 ORDER BY scheduled_at, id
		                 LIMIT 1) AS behind`, queues, levels, from, until)
	if err != nil {
		return err
	}
	found, err := pgx.CollectRows(rows, pgx.RowToStructByPos[older])
	if err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, job := range found {
		if known := d.heads[job.Queue]; job.At.Before(known.from[job.Priority-1]) {
			known.from[job.Priority-1] = job.At
			known.returns++
		}
	}
	return nil
}
