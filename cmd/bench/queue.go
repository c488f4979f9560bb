package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverdatabasesql"

	"drawbridge/internal/postgres"
	"drawbridge/internal/webhook"
	"drawbridge/jobs"
)

// webhookWorkers is how many deliveries the program works at a time, and so how
// many goroutines the floors use.
var webhookWorkers = jobs.Config(jobs.Deps{}).Queues[webhook.Queue].MaxWorkers

// sampleBody is as long as a typical event.
var sampleBody = []byte(`{"application_id":"0199e6a2-7c4e-7d6b-9a54-3f0c8c1f2b7d",` +
	`"status":"FUNDING_REQUESTED","timestamp":"2026-01-02T15:04:05.000000Z"}`)

// floorArgs is a job of the floors, in the queue of the deliveries.
type floorArgs struct {
	// Number leads to an endpoint.
	Number int `json:"number"`
}

// Kind names the job in the queue.
func (floorArgs) Kind() string { return "floor" }

// InsertOpts puts the job in the deliveries' queue.
func (floorArgs) InsertOpts() river.InsertOpts { return river.InsertOpts{Queue: webhook.Queue} }

// floorWorker does a task for each job and announces the last.
type floorWorker struct {
	river.WorkerDefaults[floorArgs]

	do   task
	left atomic.Int64
	done chan struct{}
}

// Work does the task once.
func (w *floorWorker) Work(ctx context.Context, job *river.Job[floorArgs]) error {
	if err := w.do(ctx, 0, job.Args.Number); err != nil {
		return err
	}
	if w.left.Add(-1) == 0 {
		close(w.done)
	}
	return nil
}

// nothing is the task of an empty job.
func nothing(context.Context, int, int) error { return nil }

// barePosts is the task of a bare signed POST, the endpoints taking turns.
func barePosts(targets *receivers, users int) task {
	client := targets.client(users)
	return func(ctx context.Context, _, i int) error {
		return post(ctx, client, targets.urls[i%len(targets.urls)], sampleBody)
	}
}

// floorQueue is a queue with the program's settings whose jobs are the floor's.
func (h *house) floorQueue(ctx context.Context, n int, do task) (*queue, *floorWorker, error) {
	worker := &floorWorker{do: do, done: make(chan struct{})}
	worker.left.Store(int64(n))
	config := jobs.Config(h.jobs)
	config.Workers, config.PeriodicJobs = river.NewWorkers(), nil
	river.AddWorker(config.Workers, worker)
	q, err := h.newQueue(ctx, config)
	return q, worker, err
}

// wait returns when the last job is done and the queue has written that down, as
// an attempt of the program ends when it is recorded.
func (w *floorWorker) wait(ctx context.Context, db *postgres.DB) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-w.done:
	}
	return waitUntil(ctx, func() (bool, error) {
		var open bool
		err := db.GetContext(ctx, &open, `
			SELECT EXISTS (
			           SELECT
			             FROM river_job
			            WHERE state IN ('available', 'pending', 'retryable', 'running', 'scheduled'))`)
		return !open, err
	})
}

// emptyJobs is the floor of the queue alone.
func (b *bench) emptyJobs(ctx context.Context) (timing, error) {
	return b.backlogOfJobs(ctx, nothing)
}

// postJobs is the floor of a queue that sends, without anything recorded.
func (b *bench) postJobs(ctx context.Context, targets *receivers) (timing, error) {
	return b.backlogOfJobs(ctx, barePosts(targets, webhookWorkers))
}

// backlogOfJobs works jobs that were there before the worker.
func (b *bench) backlogOfJobs(ctx context.Context, do task) (took timing, err error) {
	n := b.sizes.events
	h, err := b.newHouse(ctx, nil)
	if err != nil {
		return timing{}, err
	}
	defer func() { err = errors.Join(err, h.close()) }()
	q, worker, err := h.floorQueue(ctx, n, do)
	if err != nil {
		return timing{}, err
	}
	const batch = 1000
	for from := 0; from < n; from += batch {
		params := make([]river.InsertManyParams, 0, batch)
		for number := from; number < min(from+batch, n); number++ {
			params = append(params, river.InsertManyParams{Args: floorArgs{Number: number}})
		}
		if _, err := q.client.InsertManyFast(ctx, params); err != nil {
			return timing{}, errors.Join(fmt.Errorf("inserting empty jobs: %w", err), q.stop(ctx))
		}
	}
	if err := settle(ctx, h.db); err != nil {
		return timing{}, errors.Join(err, q.stop(ctx))
	}
	stop, err := b.clock(n)
	if err != nil {
		return timing{}, errors.Join(err, q.stop(ctx))
	}
	err = q.start(ctx)
	if err == nil {
		err = worker.wait(ctx, h.db)
	}
	took, clockErr := stop()
	return took, errors.Join(err, clockErr, q.stop(ctx))
}

// streamedJobs is the floor of publishing while delivering: a transaction that
// does nothing but insert a job, over lib/pq, and a job that does nothing but
// send.
func (b *bench) streamedJobs(ctx context.Context, targets *receivers) (took timing, err error) {
	n := b.sizes.events
	h, err := b.newHouse(ctx, nil)
	if err != nil {
		return timing{}, err
	}
	defer func() { err = errors.Join(err, h.close()) }()
	inserter, err := river.NewClient(riverdatabasesql.New(h.db.DB.DB), &river.Config{
		FetchCooldown: cooldown,
	})
	if err != nil {
		return timing{}, fmt.Errorf("preparing the queue: %w", err)
	}
	q, worker, err := h.floorQueue(ctx, n, barePosts(targets, webhookWorkers))
	if err != nil {
		return timing{}, err
	}
	defer func() { err = errors.Join(err, q.stop(ctx)) }()
	if err := q.start(ctx); err != nil {
		return timing{}, err
	}
	stop, err := b.clock(n)
	if err != nil {
		return timing{}, err
	}
	_, err = drive(ctx, publishers, n, func(ctx context.Context, _, i int) error {
		return h.db.InTx(ctx, func(tx *postgres.Tx) error { return insertJob(ctx, inserter, tx, i) })
	})
	if err == nil {
		err = worker.wait(ctx, h.db)
	}
	took, clockErr := stop()
	return took, errors.Join(err, clockErr)
}

func insertJob(
	ctx context.Context, inserter *river.Client[*sql.Tx], tx *postgres.Tx, number int,
) error {
	_, err := inserter.InsertManyFastTx(ctx, tx.Tx.Tx, []river.InsertManyParams{
		{Args: floorArgs{Number: number}},
	})
	return err
}
