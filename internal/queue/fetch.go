package queue

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river/riverdriver"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivertype"
)

// Driver is the queue library's driver with a fetch of its own.
//
// The library looks for jobs from the beginning of its index each time. That is where the
// entries of the jobs lie that were worked: vacuum takes them out, and while some
// transaction stays open it cannot. So after twenty minutes under load each fetch reads a
// million of them, hundreds of times a second. This one begins where the last fetch
// found the head of the queue, and only now and then at the beginning.
type Driver struct {
	*riverpgxv5.Driver

	pool *pgxpool.Pool
	now  func() time.Time

	mu    sync.Mutex
	heads map[string]*head
}

// head is what is known of the beginning of a queue.
type head struct {
	// from is, of each priority, since when jobs may be due that no fetch has seen.
	from [priorities]time.Time
	// whole is when the next fetch begins at the beginning.
	whole time.Time
}

const (
	// priorities is how many there are, from 1 on.
	priorities = 4
	// headSlack is how much later than its time a job may be seen: as long as the
	// transaction takes that inserts it. One that takes longer waits for a whole fetch.
	headSlack = 2 * time.Second
	// wholeEvery is the least time between two fetches from the beginning, for jobs that
	// are older than the head: handed back, or inserted by a long transaction.
	wholeEvery = time.Second
	// wholeShare is which part of the time whole fetches may take at most.
	wholeShare = 50
)

// NewDriver returns a driver over the pool of a working client, by the clock of the database.
func NewDriver(pool *pgxpool.Pool, now func() time.Time) *Driver {
	return &Driver{
		Driver: riverpgxv5.New(pool), pool: pool, now: now, heads: map[string]*head{},
	}
}

// GetExecutor returns the library's executor with that fetch.
func (d *Driver) GetExecutor() riverdriver.Executor {
	return &executor{d.Driver.GetExecutor(), d}
}

type executor struct {
	riverdriver.Executor

	driver *Driver
}

// JobGetAvailable takes jobs of a queue that may run now.
func (e *executor) JobGetAvailable(
	ctx context.Context, params *riverdriver.JobGetAvailableParams,
) ([]*rivertype.JobRow, error) {
	from, whole := e.driver.begin(params.Queue)
	began := time.Now()
	found, err := e.take(ctx, params, from, whole)
	if err != nil {
		return nil, fmt.Errorf("fetching jobs of queue %s: %w", params.Queue, err)
	}
	e.driver.end(params, found, whole, time.Since(began))
	return found, nil
}

func (e *executor) take(
	ctx context.Context, params *riverdriver.JobGetAvailableParams, from []time.Time, whole bool,
) ([]*rivertype.JobRow, error) {
	if whole {
		return e.Executor.JobGetAvailable(ctx, params)
	}
	rows, err := e.driver.pool.Query(ctx, fetchBehind, params.Now, params.MaxAttemptedBy,
		params.ClientID, params.Queue, params.MaxToLock, from)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, scanJob)
}

// fetchBehind is the library's statement with a time to begin at for each priority, so that
// the index is entered where the jobs are that still wait. A priority is looked at when
// those before it did not fill the fetch.
const fetchBehind = `
	WITH locked AS (
		SELECT due.id
		  FROM unnest($6::timestamptz[]) WITH ORDINALITY AS head (at, priority),
		       LATERAL (SELECT id
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
	 WHERE j.id = locked.id
	RETURNING j.id, j.args, j.attempt, j.attempted_at, j.attempted_by, j.created_at, j.errors,
	          j.finalized_at, j.kind, j.max_attempts, j.metadata, j.priority, j.queue,
	          j.state::text, j.scheduled_at, j.tags, j.unique_key`

func scanJob(row pgx.CollectableRow) (*rivertype.JobRow, error) {
	var job rivertype.JobRow
	var faults [][]byte
	var state string
	err := row.Scan(&job.ID, &job.EncodedArgs, &job.Attempt, &job.AttemptedAt, &job.AttemptedBy,
		&job.CreatedAt, &faults, &job.FinalizedAt, &job.Kind, &job.MaxAttempts, &job.Metadata,
		&job.Priority, &job.Queue, &state, &job.ScheduledAt, &job.Tags, &job.UniqueKey)
	if err != nil {
		return nil, err
	}
	job.State = rivertype.JobState(state)
	job.Errors = make([]rivertype.AttemptError, len(faults))
	for i, fault := range faults {
		if err := json.Unmarshal(fault, &job.Errors[i]); err != nil {
			return nil, fmt.Errorf("reading an error of job %d: %w", job.ID, err)
		}
	}
	return &job, nil
}

// begin tells where a fetch is to begin, or that it is to be a whole one.
func (d *Driver) begin(queue string) (from []time.Time, whole bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	known := d.heads[queue]
	if known == nil || !time.Now().Before(known.whole) {
		return nil, true
	}
	return slices.Clone(known.from[:]), false
}

// end notes what a fetch found. Where it took as many jobs as it might, the head of the last
// priority is where its first job was, and later ones were not looked at; what was looked at
// to its end has its head now.
func (d *Driver) end(
	params *riverdriver.JobGetAvailableParams, found []*rivertype.JobRow, whole bool,
	took time.Duration,
) {
	now, last := d.now(), priorities+1
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
	for priority := 1; priority <= min(last, priorities); priority++ {
		first := now
		for _, job := range found {
			if priority == last && job.Priority == last && job.ScheduledAt.Before(first) {
				first = job.ScheduledAt
			}
		}
		known.from[priority-1] = first.Add(-headSlack)
	}
	if whole {
		known.whole = time.Now().Add(max(wholeEvery, wholeShare*took))
	}
}
