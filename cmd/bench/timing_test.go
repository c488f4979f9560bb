package main

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"time"
)

func TestQuantile(t *testing.T) {
	t.Parallel()
	var hundred timing
	for i := range 100 {
		hundred.each = append(hundred.each, time.Duration(100-i)*time.Millisecond)
	}
	tests := []struct {
		name  string
		of    timing
		share float64
		want  time.Duration
	}{
		{"none", timing{}, 0.5, 0},
		{"one", timing{each: []time.Duration{time.Second}}, 0.99, time.Second},
		{"the median", hundred, 0.5, 51 * time.Millisecond},
		{"the slowest", hundred, 0.99, 100 * time.Millisecond},
		{"beyond the last", hundred, 1, 100 * time.Millisecond},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			if got := test.of.quantile(test.share); got != test.want {
				t.Errorf("%s, want %s", got, test.want)
			}
		})
	}
}

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

func TestJoinedRounds(t *testing.T) {
	t.Parallel()
	first := timing{each: []time.Duration{1, 2}, total: time.Second}
	both := first.join(timing{each: []time.Duration{3}, total: 2 * time.Second})
	if !slices.Equal(both.each, []time.Duration{1, 2, 3}) || both.rate() != 1 {
		t.Errorf("%v in %s", both.each, both.total)
	}
}
