package delivery

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/jmoiron/sqlx"

	"drawbridge/internal/postgres"
	"drawbridge/internal/postgres/pgtest"
)

var errRefused = errors.New("refused")

// crowd is a batcher whose first statement waits until the test releases it, so that
// callers that come meanwhile share the next.
type crowd struct {
	batcher[int, int]
	db      *postgres.DB
	started chan struct{}
	let     chan struct{}
	mu      sync.Mutex
	shared  [][]int
	// poison makes every statement that includes it fail.
	poison int
}

func newCrowd(t *testing.T) *crowd {
	t.Helper()
	return &crowd{
		db: pgtest.New(t), started: make(chan struct{}, batchFlights), let: make(chan struct{}),
	}
}

func (c *crowd) batch() batch[int, int] {
	return batch[int, int]{
		db:  c.db,
		key: func(in int) string { return fmt.Sprint(in % 1000) },
		run: func(_ context.Context, _ *sqlx.DB, ins []int) ([]int, error) {
			if ins[0] < 0 {
				c.started <- struct{}{}
				<-c.let
			}
			c.mu.Lock()
			c.shared = append(c.shared, ins)
			c.mu.Unlock()
			if c.poison != 0 && slices.Contains(ins, c.poison) {
				return nil, errRefused
			}
			outs := make([]int, len(ins))
			for i, in := range ins {
				outs[i] = 2 * in
			}
			return outs, nil
		},
	}
}

// gather starts callers that wait together, releases them, and returns their errors.
func (c *crowd) gather(t *testing.T, ins ...int) map[int]error {
	t.Helper()
	var callers sync.WaitGroup
	for flight := range batchFlights {
		callers.Go(func() { _, _ = c.do(t.Context(), c.batch(), -1-flight) })
		<-c.started
	}
	errs := make(map[int]error)
	for _, in := range ins {
		callers.Go(func() {
			out, err := c.do(t.Context(), c.batch(), in)
			if err == nil && out != 2*in {
				t.Errorf("%d got the result %d of another", in, out)
			}
			c.mu.Lock()
			defer c.mu.Unlock()
			errs[in] = err
		})
	}
	for waiting := 0; waiting < len(ins); {
		c.batcher.mu.Lock() // the batcher's own, not the test's
		waiting = len(c.waiting)
		c.batcher.mu.Unlock()
	}
	close(c.let)
	callers.Wait()
	return errs
}

// sizes returns how many callers shared each statement, leaving out the one that waited.
func (c *crowd) sizes() []int {
	var sizes []int
	for _, ins := range c.shared {
		if ins[0] >= 0 {
			sizes = append(sizes, len(ins))
		}
	}
	slices.Sort(sizes)
	return sizes
}

func TestGroupSharesStatements(t *testing.T) {
	t.Parallel()
	c := newCrowd(t)
	ins := make([]int, batchLimit+20)
	for i := range ins {
		ins[i] = i + 1
	}
	for in, err := range c.gather(t, ins...) {
		if err != nil {
			t.Errorf("%d: %v", in, err)
		}
	}
	if got := c.sizes(); !slices.Equal(got, []int{20, batchLimit}) {
		t.Errorf("%d callers shared statements of %d", len(ins), got)
	}
}

func TestGroupFailsNobodyForAnother(t *testing.T) {
	t.Parallel()
	c := newCrowd(t)
	c.poison = 3
	for in, err := range c.gather(t, 1, 2, 3, 4) {
		if want := in == c.poison; errors.Is(err, errRefused) != want {
			t.Errorf("%d: %v", in, err)
		}
	}
	if got := c.sizes(); !slices.Equal(got, []int{1, 1, 1, 1, 4}) {
		t.Errorf("statements of %d, want a shared one and then one for each", got)
	}
}

// Two callers with the same delivery never share a statement.
func TestBatcherKeepsEqualKeysApart(t *testing.T) {
	t.Parallel()
	c := newCrowd(t)
	for in, err := range c.gather(t, 7, 1007, 8) {
		if err != nil {
			t.Errorf("%d: %v", in, err)
		}
	}
	for _, ins := range c.shared {
		if slices.Contains(ins, 7) && slices.Contains(ins, 1007) {
			t.Errorf("7 and 1007 are about the same and shared %d", ins)
		}
	}
}

// A caller whose context ends returns; the others are still served.
func TestBatcherReleasesCancelledCallers(t *testing.T) {
	t.Parallel()
	c := newCrowd(t)
	ended, end := context.WithCancel(t.Context())
	end()
	close(c.let)
	if _, err := c.do(ended, c.batch(), -1); err != nil && !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if out, err := c.do(t.Context(), c.batch(), 5); err != nil || out != 10 {
		t.Errorf("got %d, %v, want 10", out, err)
	}
}

// TestFewCallersRunAloneAtATime: when a lock makes shared statements fail, the callers
// that then wait for it one by one take only some of the connections, not all.
func TestFewCallersRunAloneAtATime(t *testing.T) {
	t.Parallel()
	const callers = 3 * maxSingles
	var g batcher[int, int]
	var mu sync.Mutex
	alone, most := 0, 0
	full := make(chan struct{})
	fill := sync.OnceFunc(func() { close(full) })
	e := batch[int, int]{
		db:  pgtest.New(t),
		key: func(in int) string { return fmt.Sprint(in) },
	}
	common := e.db.DB
	e.run = func(_ context.Context, on *sqlx.DB, ins []int) ([]int, error) {
		if on != common {
			return nil, errRefused
		}
		mu.Lock()
		alone++
		if most = max(most, alone); alone == maxSingles {
			fill()
		}
		mu.Unlock()
		<-full
		mu.Lock()
		defer mu.Unlock()
		alone--
		if most > maxSingles {
			return nil, errRefused
		}
		return ins, nil
	}
	var working sync.WaitGroup
	for in := range callers {
		working.Go(func() {
			if out, err := g.do(t.Context(), e, in); err != nil || out != in {
				t.Errorf("caller %d got %d (%v)", in, out, err)
			}
		})
	}
	working.Wait()
	if most != maxSingles {
		t.Errorf("%d were alone at a time, want %d", most, maxSingles)
	}
}
