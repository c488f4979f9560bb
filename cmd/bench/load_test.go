package main

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"
)

func TestDriveDoesEachOnce(t *testing.T) {
	t.Parallel()
	const n = 500
	done := make([]atomic.Int32, n)
	took, err := drive(t.Context(), 7, n, func(_ context.Context, worker, i int) error {
		if worker < 0 || worker >= 7 {
			t.Errorf("worker %d of 7", worker)
		}
		done[i].Add(1)
		return nil
	})
	if err != nil || len(took.each) != n || took.total <= 0 || took.rate() <= 0 {
		t.Fatalf("%d things in %s (%v)", len(took.each), took.total, err)
	}
	for i := range done {
		if count := done[i].Load(); count != 1 {
			t.Errorf("number %d was done %d times", i, count)
		}
	}
}

func TestDriveStopsAtAnError(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	var begun atomic.Int32
	_, err := drive(t.Context(), 4, 1_000_000, func(ctx context.Context, _, i int) error {
		begun.Add(1)
		if i == 10 {
			return broken
		}
		return ctx.Err()
	})
	if !errors.Is(err, broken) {
		t.Errorf("error %v, want that of the thing that broke", err)
	}
	if count := begun.Load(); count == 1_000_000 {
		t.Error("everything was done all the same")
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := drive(ended, 2, 10, nothing); !errors.Is(err, context.Canceled) {
		t.Errorf("after the end of the context: %v", err)
	}
}

func TestWaitUntil(t *testing.T) {
	t.Parallel()
	asked := 0
	err := waitUntil(t.Context(), func() (bool, error) {
		asked++
		return asked == 3, nil
	})
	if err != nil || asked != 3 {
		t.Errorf("asked %d times: %v", asked, err)
	}
	broken := errors.New("broken")
	err = waitUntil(t.Context(), func() (bool, error) { return false, broken })
	if !errors.Is(err, broken) {
		t.Errorf("error %v, want that of the condition", err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	err = waitUntil(ended, func() (bool, error) { return false, nil })
	if !errors.Is(err, context.Canceled) {
		t.Errorf("after the end of the context: %v", err)
	}
}

func TestPace(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		pace  pace
		least time.Duration
	}{
		"steady":    {pace{rate: 200}, 20 * time.Millisecond},
		"random":    {pace{rate: 200, random: true}, 0},
		"at once":   {pace{most: 3}, 0},
		"one place": {pace{rate: 200, most: 1}, 20 * time.Millisecond},
	} {
		var under, done atomic.Int64
		began := time.Now()
		err := test.pace.run(t.Context(), 5, func(i int, due time.Time) error {
			if now := under.Add(1); test.pace.most > 0 && now > int64(test.pace.most) {
				t.Errorf("%s: %d are under way", name, now)
			}
			defer under.Add(-1)
			done.Add(1 << (8 * i))
			if due.Before(began) {
				t.Errorf("%s: number %d was due before the start", name, i)
			}
			return nil
		})
		if err != nil || done.Load() != 0x0101010101 || time.Since(began) < test.least {
			t.Errorf("%s: did %x in %s (%v)", name, done.Load(), time.Since(began), err)
		}
	}
}

func TestPaceEnds(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	err := pace{most: 2}.run(t.Context(), 9, func(i int, _ time.Time) error {
		if i == 4 {
			return broken
		}
		return nil
	})
	if !errors.Is(err, broken) {
		t.Errorf("error %v, want that of the thing that broke", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := 0
	err = pace{most: 1}.run(ctx, 0, func(int, time.Time) error {
		if done++; done == 5 {
			cancel()
		}
		return nil
	})
	if err != nil || done < 5 {
		t.Errorf("without a number: %v after %d", err, done)
	}
	if err := (pace{rate: 1}).run(ctx, 2, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("a number that was not reached: %v", err)
	}
}
