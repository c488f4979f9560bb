package jobs

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
)

// TestQueueAcceptsEveryAttemptLimit makes a client for each limit that the settings
// allow; no job is taken for lost before its attempt can be over.
func TestQueueAcceptsEveryAttemptLimit(t *testing.T) {
	t.Parallel()
	// A pool connects only when it is used, and making a client does not use it.
	pool, err := pgxpool.New(t.Context(), "postgres://nobody@127.0.0.1:1/nothing")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	for _, limit := range []time.Duration{
		time.Millisecond, time.Second, 10 * time.Second, 30 * time.Second, time.Minute,
	} {
		config := Config(Deps{WebhookTimeout: limit})
		if _, err := river.NewClient(riverpgxv5.New(pool), config); err != nil {
			t.Errorf("an attempt limit of %s: %v", limit, err)
		}
		if margin := stuckAfter(limit) - limit; margin < 30*time.Second {
			t.Errorf("an attempt limit of %s is rescued %s after it", limit, margin)
		}
	}
}

// TestAStepThatHangsHoldsUpNoOther: reclaiming goes on with the next step once one has
// used up its time.
func TestAStepThatHangsHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	taken := 0
	err := runAll(t.Context(), time.Millisecond, []func(context.Context) error{
		func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() },
		func(context.Context) error { taken++; return nil },
	})
	if taken != 1 || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the next step was taken %d times; it ended with %v", taken, err)
	}
}
