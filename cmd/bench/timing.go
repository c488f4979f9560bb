package main

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// timing is how long things took: each of them, and all together.
type timing struct {
	each  []time.Duration
	total time.Duration
	// processor is what they used of the processors, 0 where it was not measured.
	processor time.Duration
}

// processorEach is what each of them used of the processors.
func (t timing) processorEach() time.Duration {
	return t.processor / time.Duration(max(len(t.each), 1))
}

// rate is how many came per second.
func (t timing) rate() float64 { return float64(len(t.each)) / t.total.Seconds() }

// quantile is the duration that the share q of them, from 0 to 1, did not
// exceed; 0 without any.
func (t timing) quantile(q float64) time.Duration {
	if len(t.each) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(t.each))
	return sorted[min(int(q*float64(len(sorted))), len(sorted)-1)]
}

// join adds what a later round found.
func (t timing) join(other timing) timing {
	return timing{
		each: append(t.each, other.each...), total: t.total + other.total,
		processor: t.processor + other.processor,
	}
}

// task does the i-th of many things; worker tells which of the goroutines it
// runs in.
type task func(ctx context.Context, worker, i int) error

// drive does n things with a fixed number of goroutines, each of which begins
// with the next as soon as it has ended one. The first error stops all.
func drive(ctx context.Context, workers, n int, do task) (timing, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	each := make([]time.Duration, n)
	var next atomic.Int64
	var group sync.WaitGroup
	start := time.Now()
	for worker := range workers {
		group.Go(func() {
			for i := int(next.Add(1)) - 1; i < n && ctx.Err() == nil; i = int(next.Add(1)) - 1 {
				began := time.Now()
				if err := do(ctx, worker, i); err != nil {
					cancel(err)
					return
				}
				each[i] = time.Since(began)
			}
		})
	}
	group.Wait()
	if err := context.Cause(ctx); err != nil {
		return timing{}, err
	}
	return timing{each: each, total: time.Since(start)}, nil
}

const (
	// pollEvery is how often a condition is looked at that nothing announces.
	pollEvery = 2 * time.Millisecond
	// patience is how long it may take until it holds.
	patience = 5 * time.Minute
)

// errPatience says that a condition was given up.
var errPatience = fmt.Errorf("what was waited for did not come within %s", patience)

// waitUntil returns once the condition holds, or with the error that it gave.
func waitUntil(ctx context.Context, holds func() (bool, error)) error {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, errPatience)
	defer cancel()
	ticker := time.NewTicker(pollEvery)
	defer ticker.Stop()
	for {
		if done, err := holds(); done || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-ticker.C:
		}
	}
}
