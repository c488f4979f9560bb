package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// task does the i-th of many things; worker is the number of the goroutine that it runs
// in.
type task func(ctx context.Context, worker, i int) error

// drive does n things with a fixed number of goroutines, each of which begins the next as
// soon as it has ended one. The first error stops all.
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

// pace determines when things begin, independently of how long each takes.
type pace struct {
	// rate is how many begin per second; 0 begins the next as soon as there is a free slot.
	rate float64
	// random makes them begin at random moments.
	random bool
	// most is how many may be under way, 0 for any number. One that finds no free slot
	// waits, and gets the time when it was due.
	most int
}

// run begins n things, or any number until ctx ends for n = 0, and waits for all.
func (p pace) run(ctx context.Context, n int, do func(i int, due time.Time) error) error {
	places := make(chan struct{}, cmp.Or(p.most, n))
	var mu sync.Mutex
	var errs []error
	var group sync.WaitGroup
	due := time.Now()
	for i := 0; (n == 0 || i < n) && ctx.Err() == nil; i++ {
		select {
		case <-ctx.Done():
		case <-time.After(time.Until(due)):
		}
		select {
		case <-ctx.Done():
			continue
		case places <- struct{}{}:
		}
		at := due
		group.Go(func() {
			defer func() { <-places }()
			if err := do(i, at); err != nil {
				mu.Lock()
				defer mu.Unlock()
				errs = append(errs, err)
			}
		})
		due = p.next(due)
	}
	group.Wait()
	if n > 0 {
		errs = append(errs, context.Cause(ctx))
	}
	return errors.Join(errs...)
}

// next returns when the next thing is due after one that was due at a time.
func (p pace) next(due time.Time) time.Time {
	if p.rate == 0 {
		return time.Now()
	}
	gaps := 1.0
	if p.random {
		gaps = rand.ExpFloat64()
	}
	return due.Add(time.Duration(gaps / p.rate * float64(time.Second)))
}

const (
	// pollEvery is how often a condition is checked that sends no notification.
	pollEvery = 2 * time.Millisecond
	// patience is how long a condition may take to hold.
	patience = 5 * time.Minute
)

// errPatience is the error for a condition that did not hold in time.
var errPatience = fmt.Errorf("what was waited for did not come within %s", patience)

// waitUntil returns once the condition holds or returns an error.
func waitUntil(ctx context.Context, holds func() (bool, error)) error {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, errPatience)
	defer cancel()
	return poll(ctx, pollEvery, holds)
}

// poll checks at intervals whether the condition holds, until ctx ends.
func poll(ctx context.Context, every time.Duration, holds func() (bool, error)) error {
	ticker := time.NewTicker(every)
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

// cleanup are clean-up functions, which run last first.
type cleanup []func() error

func (e *cleanup) add(end func() error) { *e = append(*e, end) }

// withCleanups runs do, and then the clean-up functions that it added.
func withCleanups(do func(open *cleanup) error) (err error) {
	var open cleanup
	defer open.run(&err)
	return do(&open)
}

//nolint:gocritic // ptrToRefParam: a deferred call changes its caller's result
func (e *cleanup) run(err *error) {
	for _, end := range slices.Backward(*e) {
		*err = errors.Join(*err, end())
	}
}
