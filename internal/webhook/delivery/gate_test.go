package delivery

import (
	"context"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jmoiron/sqlx"

	"drawbridge/internal/postgres"
)

// begun runs one batch and returns how long after the call its statement began.
func begun(t *testing.T, g *batcher[int, int], calls *Gate) time.Duration {
	t.Helper()
	asked := time.Now()
	var after time.Duration
	_, err := g.do(t.Context(), batch[int, int]{
		db:   &postgres.DB{},
		gate: calls,
		key:  func(int) string { return "" },
		run: func(_ context.Context, _ *sqlx.DB, ins []int) ([]int, error) {
			after = time.Since(asked)
			return ins, nil
		},
	}, 1)
	if err != nil {
		t.Fatal(err)
	}
	return after
}

func TestStatementsStandBackForCallsUnderLoad(t *testing.T) {
	t.Parallel()
	const pause = 2 * time.Millisecond
	for _, test := range []struct {
		name string
		// answered is when the open request is answered, 0 if none is open.
		answered time.Duration
		lone     bool
		want     time.Duration
	}{
		{name: "no call", want: pause},
		{name: "a call", answered: 10 * time.Millisecond, want: 10 * time.Millisecond},
		{name: "a call that was answered in the pause", answered: time.Millisecond, want: pause},
		{name: "a call without end", answered: time.Hour, want: pause + maxYield},
		{name: "a lone statement", answered: time.Hour, lone: true, want: 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var calls Gate
				var g batcher[int, int]
				if !test.lone {
					g.pause.Store(int64(pause))
				}
				if test.answered > 0 {
					time.AfterFunc(test.answered, calls.Begin())
				}
				if got := begun(t, &g, &calls); got != test.want {
					t.Errorf("the statement began after %s, want %s", got, test.want)
				}
			})
		})
	}
}

// TestStatementsAreSmallAfterAPIRequests makes very many calls at once, soon after an API
// request and long after it.
func TestStatementsAreSmallAfterAPIRequests(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		after time.Duration
		most  int
	}{
		{requestMemory / 2, smallStatement},
		{2 * requestMemory, batchLimit},
	} {
		t.Run(test.after.String(), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var calls Gate
				calls.Begin()()
				<-time.After(test.after)
				var g batcher[int, int]
				var sizes []int // the batcher runs one statement at a time after the first
				ask := batch[int, int]{
					db: &postgres.DB{}, gate: &calls, key: strconv.Itoa,
					run: func(_ context.Context, _ *sqlx.DB, ins []int) ([]int, error) {
						<-time.After(time.Millisecond)
						if len(ins) > 1 {
							sizes = append(sizes, len(ins))
						}
						return ins, nil
					},
				}
				var callers sync.WaitGroup
				g.flights = batchFlights - 1
				for i := range batchLimit + 1 {
					callers.Go(func() { _, _ = g.do(t.Context(), ask, i) })
				}
				callers.Wait()
				<-time.After(2 * maxBatchWait) // the last flight checks once more for waiting callers
				if got := slices.Max(sizes); got > test.most || got < test.most/2 {
					t.Errorf("statements of %v, want %d at most and about", sizes, test.most)
				}
			})
		})
	}
}

// TestStatementsGrowWithTheTimeTheyYielded checks that callers who hardly pause cannot
// stop the engine: where API requests leave few gaps, each gap is used.
func TestStatementsGrowWithTheTimeTheyYielded(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name string
		// open is how long the API requests leave no gap.
		open time.Duration
		want int
	}{
		{"between calls", 0, smallStatement},
		{"after one call", usualRequest, smallStatement},
		{"after several calls", usualRequest + 10*time.Millisecond, smallStatement + 10*growth},
		{"without a gap", time.Hour, batchLimit},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var calls Gate
				end := calls.Begin()
				if test.open == 0 {
					end()
				} else {
					time.AfterFunc(test.open, end)
				}
				got, done := calls.beforeStatement()
				if got != test.want {
					t.Errorf("a step of %d deliveries, want %d", got, test.want)
				}
				done()
			})
		})
	}
}

// TestSmallStatementsRunOneAtATime runs two kinds of statement concurrently, soon after
// an API request.
func TestSmallStatementsRunOneAtATime(t *testing.T) {
	t.Parallel()
	calls := Gate{endedAt: time.Now().Add(time.Hour)} // the last request stays recent
	var running, together atomic.Int64
	ask := batch[int, int]{
		db: &postgres.DB{}, gate: &calls, key: strconv.Itoa,
		run: func(_ context.Context, _ *sqlx.DB, ins []int) ([]int, error) {
			if running.Add(1) > 1 {
				together.Add(1)
			}
			<-time.After(time.Millisecond)
			running.Add(-1)
			return ins, nil
		},
	}
	var reads, records batcher[int, int]
	reads.pause.Store(int64(minBatchWait))
	records.pause.Store(int64(minBatchWait))
	var callers sync.WaitGroup
	for i := range 4 * smallStatement {
		callers.Go(func() { _, _ = reads.do(t.Context(), ask, i) })
		callers.Go(func() { _, _ = records.do(t.Context(), ask, i) })
	}
	callers.Wait()
	if got := together.Load(); got != 0 {
		t.Errorf("%d statements began while another ran, want none", got)
	}
}

// TestUnknownEndpointsShareTheirOwnSlots lets endpoints that have never answered take all
// of their slots and hang.
func TestUnknownEndpointsShareTheirOwnSlots(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var gate Gate
		const unknown, quick = 0, time.Millisecond
		took := func(mean time.Duration) time.Duration {
			began := time.Now()
			end := gate.beforeSend(t.Context(), mean)
			t.Cleanup(end)
			return time.Since(began)
		}
		for range quickSends {
			if waited := took(unknown); waited != 0 {
				t.Errorf("with room for it a request waited for %s", waited)
			}
		}
		if waited := took(quick); waited != 0 {
			t.Errorf("a request to a quick endpoint waited for %s behind unknown ones", waited)
		}
		if waited := took(unknown); waited != sendLength {
			t.Errorf("one more waited for %s, want until the first slots are free, %s",
				waited, sendLength)
		}
	})
}

// TestSendsYieldToAPIRequestsUnderLoad makes a send wait for a slot behind others while
// two API requests are open.
func TestSendsYieldToAPIRequestsUnderLoad(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var calls Gate
		const quick = time.Millisecond
		first, second := calls.Begin(), calls.Begin()
		began := time.Now()
		for range quickSends {
			time.AfterFunc(time.Millisecond, calls.beforeSend(t.Context(), quick))
		}
		if waited := time.Since(began); waited != 0 {
			t.Errorf("with room for it a request waited for %s", waited)
		}
		time.AfterFunc(3*time.Millisecond, first)
		time.AfterFunc(7*time.Millisecond, second)
		calls.beforeSend(t.Context(), quick)()
		if waited := time.Since(began); waited != 7*time.Millisecond {
			t.Errorf("a request in a queue waited for %s, want until the last call was answered", waited)
		}
		if got := calls.InFlight(); got != 0 {
			t.Errorf("%d calls in flight, want 0", got)
		}
	})
}
