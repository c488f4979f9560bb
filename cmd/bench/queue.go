package main

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/riverqueue/river"

	"drawbridge/internal/postgres"
	"drawbridge/internal/webhook/delivery"
	"drawbridge/jobs"
)

// webhookWorkers is how many deliveries the program works at a time, and so the number of
// goroutines of the floors.
var webhookWorkers = jobs.Config(jobs.Deps{}).Queues[delivery.Queue].MaxWorkers

// sampleBody is as long as a typical event.
var sampleBody = []byte(`{"application_id":"0199e6a2-7c4e-7d6b-9a54-3f0c8c1f2b7d",` +
	`"status":"FUNDING_REQUESTED","timestamp":"2026-01-02T15:04:05.000000Z"}`)

// floorArgs is a job of the floors, in the queue of the deliveries.
type floorArgs struct {
	// Number determines the endpoint.
	Number int `json:"number"`
}

// Kind names the job in the queue.
func (floorArgs) Kind() string { return "floor" }

// InsertOpts puts the job in the deliveries' queue.
func (floorArgs) InsertOpts() river.InsertOpts { return river.InsertOpts{Queue: delivery.Queue} }

// floorWorker does a task for each job, and signals when the last is done.
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

// nothing is the task of an empty job: it does nothing.
func nothing(context.Context, int, int) error { return nil }

// barePosts is the task of a bare signed POST, to the endpoints in turn.
func barePosts(targets *receivers, users int) task {
	client := targets.client(users)
	return func(ctx context.Context, _, i int) error {
		return post(ctx, client, targets.urls[i%len(targets.urls)], sampleBody)
	}
}

// floorQueue works n jobs that do a task, in a queue with the program's settings, while insert
// inserts them. It ends when the last job is done and the queue has recorded that, as an
// attempt of the program ends when it is recorded.
func (b *bench) floorQueue(
	ctx context.Context, h *harness, do task, insert func() error,
) (took timing, err error) {
	n := b.sizes.events
	worker, config := h.floorWorker(n, do)
	clock, err := b.clock(n)
	if err != nil {
		return timing{}, err
	}
	err = h.runQueue(ctx, config, func() error {
		err := insert()
		if err == nil {
			err = h.worked(ctx, worker)
		}
		if err == nil {
			took, err = clock()
		}
		return err
	})
	return took, err
}

// floorWorker does a task for each of n jobs, in a queue with the program's settings.
func (h *harness) floorWorker(n int, do task) (*floorWorker, *river.Config) {
	worker := &floorWorker{do: do, done: make(chan struct{})}
	worker.left.Store(int64(n))
	config := h.QueueConfig()
	config.Workers, config.PeriodicJobs = river.NewWorkers(), nil
	river.AddWorker(config.Workers, worker)
	return worker, config
}

// worked waits until a worker has done its last job and the queue has recorded that.
func (h *harness) worked(ctx context.Context, worker *floorWorker) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-worker.done:
	}
	return waitUntil(ctx, func() (bool, error) {
		var open bool
		err := h.DB.GetContext(ctx, &open, `
			SELECT EXISTS (
			           SELECT
			             FROM river_job
			            WHERE state IN ('available', 'pending', 'retryable', 'running', 'scheduled'))`)
		return !open, err
	})
}

// backlogOfJobs is the floor of a queue whose jobs existed before the worker, without recording
// anything.
func (b *bench) backlogOfJobs(ctx context.Context, do task) (_ timing, err error) {
	var open cleanup
	defer open.run(&err)
	h, err := b.newHarness(ctx, &open, nil)
	if err != nil {
		return timing{}, err
	}
	params := make([]river.InsertManyParams, b.sizes.events)
	for number := range params {
		params[number].Args = floorArgs{Number: number}
	}
	for batch := range slices.Chunk(params, 1000) {
		if _, err := h.Jobs.InsertManyFast(ctx, batch); err != nil {
			return timing{}, fmt.Errorf("inserting jobs: %w", err)
		}
	}
	if err := settle(ctx, h.DB); err != nil {
		return timing{}, err
	}
	return b.floorQueue(ctx, h, do, func() error { return nil })
}

// insertJob is the task that inserts one job of the floors in a transaction.
func (h *harness) insertJob(ctx context.Context, _, i int) error {
	return h.DB.InTx(ctx, func(tx *postgres.Tx) error {
		_, err := h.Jobs.InsertManyFastTx(ctx, tx.Tx.Tx,
			[]river.InsertManyParams{{Args: floorArgs{Number: i}}})
		return err
	})
}
