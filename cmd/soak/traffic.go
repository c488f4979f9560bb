package main

import (
	"context"
	"errors"
	"maps"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"
)

// kind is one kind of work and its weight in the mix.
type kind struct {
	name   string
	weight int
	do     func(c *caller, ctx context.Context) error
}

// mix is what is offered.
var mix = []kind{
	{"task", 35, (*caller).task},
	{"read loan", 25, (*caller).read},
	{"draw and funding", 15, (*caller).draw},
	{"open a loan", 10, (*caller).open},
	{"console page", 10, (*caller).look},
	{"upload of 256 KiB", 5, (*caller).upload},
}

const (
	// users call at the same time while the peak is measured.
	users = 16
	// most is how many may be under way at the steady pace; a piece of work that
	// finds no place waits, and its time counts from when it was due.
	most = 128
)

// traffic offers the mix.
type traffic struct {
	caller *caller
	made   atomic.Int64

	mu sync.Mutex
	// took are the times since they were last asked for, by kind.
	took     map[string][]float64
	failures map[string]int
}

func newTraffic(ctx context.Context, p *program) (*traffic, error) {
	c, err := newCaller(ctx, p, users)
	if err != nil {
		return nil, err
	}
	t := &traffic{caller: c}
	t.begin()
	return t, nil
}

// begin forgets what was counted.
func (t *traffic) begin() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.took, t.failures = map[string][]float64{}, map[string]int{}
	t.made.Store(0)
}

// pick draws a kind by its weight.
func pick() kind {
	total := 0
	for _, one := range mix {
		total += one.weight
	}
	at := rand.IntN(total)
	for _, one := range mix {
		if at -= one.weight; at < 0 {
			return one
		}
	}
	return mix[0]
}

// do does a piece of work that was due at a time.
func (t *traffic) do(ctx context.Context, due time.Time) {
	one := pick()
	err := one.do(t.caller, ctx)
	if ctx.Err() != nil {
		return // the end of the run
	}
	t.made.Add(1)
	t.mu.Lock()
	defer t.mu.Unlock()
	if err != nil {
		t.failures[one.name+": "+err.Error()]++
		return
	}
	t.took[one.name] = append(t.took[one.name], milliseconds(time.Since(due)))
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// peak is how many pieces of work a second the program carries when each caller
// begins the next as soon as one has ended.
func (t *traffic) peak(ctx context.Context, length time.Duration) (float64, error) {
	began := time.Now()
	ctx, cancel := context.WithTimeout(ctx, length)
	defer cancel()
	var group sync.WaitGroup
	for range users {
		group.Go(func() {
			for ctx.Err() == nil {
				t.do(ctx, time.Now())
			}
		})
	}
	group.Wait()
	if failed := t.failed(); len(failed) > 0 {
		for what := range failed {
			return 0, errors.New("measuring the peak: " + what)
		}
	}
	return float64(t.made.Load()) / time.Since(began).Seconds(), nil
}

// pace offers so many pieces a second until ctx ends.
func (t *traffic) pace(ctx context.Context, rate float64) error {
	places := make(chan struct{}, most)
	var group sync.WaitGroup
	defer group.Wait()
	due := time.Now()
	for {
		due = due.Add(time.Duration(rand.ExpFloat64() / rate * float64(time.Second)))
		if wait := time.Until(due); wait > 0 {
			select {
			case <-ctx.Done():
				return nil
			case <-time.After(wait):
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case places <- struct{}{}:
		}
		at := due // which the next round moves on
		group.Go(func() {
			defer func() { <-places }()
			t.do(ctx, at)
		})
	}
}

// times returns what the work took since the last call, by kind.
func (t *traffic) times() map[string][]float64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	took := t.took
	t.took = map[string][]float64{}
	return took
}

// failed returns what went wrong and how often.
func (t *traffic) failed() map[string]int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return maps.Clone(t.failures)
}
