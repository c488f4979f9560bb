package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"

	"drawbridge/jobs"
)

// stopTimeout is what jobs in flight have to end.
const stopTimeout = 30 * time.Second

// queue is a working client of River over pgx, as the program runs it.
type queue struct {
	client *river.Client[pgx.Tx]
	pool   *pgxpool.Pool
}

// newQueue connects a working client; it does not work yet.
func (h *house) newQueue(ctx context.Context, config *river.Config) (*queue, error) {
	pool, err := pgxpool.New(ctx, h.db.URL())
	if err != nil {
		return nil, fmt.Errorf("connecting the queue: %w", err)
	}
	config.Logger = slog.Default()
	client, err := river.NewClient(riverpgxv5.New(pool), config)
	if err != nil {
		pool.Close()
		return nil, fmt.Errorf("preparing the queue: %w", err)
	}
	return &queue{client: client, pool: pool}, nil
}

// start begins to work.
func (q *queue) start(ctx context.Context) error {
	if err := q.client.Start(context.WithoutCancel(ctx)); err != nil {
		return fmt.Errorf("starting the queue: %w", err)
	}
	return nil
}

// stop ends the jobs in flight and disconnects.
func (q *queue) stop(ctx context.Context) error {
	defer q.pool.Close()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
	defer cancel()
	if err := q.client.Stop(ctx); err != nil {
		return fmt.Errorf("stopping the queue: %w", err)
	}
	return nil
}

// work starts the worker of a process, the promoter of due deliveries included,
// and returns what stops it.
func (h *house) work(ctx context.Context) (stop func() error, err error) {
	q, err := h.newQueue(ctx, jobs.Config(h.jobs))
	if err != nil {
		return nil, err
	}
	if err := q.start(ctx); err != nil {
		return nil, errors.Join(err, q.stop(ctx))
	}
	promoting, cancel := context.WithCancel(ctx)
	var promoter sync.WaitGroup
	promoter.Go(func() { jobs.Promote(promoting, h.webhooks) })
	return func() error {
		cancel()
		promoter.Wait()
		return q.stop(ctx)
	}, nil
}
