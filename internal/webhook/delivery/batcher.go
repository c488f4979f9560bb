package delivery

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jmoiron/sqlx"

	"drawbridge/internal/postgres"
)

const (
	// batchLimit bounds how many callers share a statement, and so how long the statement
	// takes and how much is repeated when one of them makes it fail.
	batchLimit = 100
	// minBatchWait is the shortest, and maxBatchWait the longest, time that a statement waits
	// for more callers when the last one had several.
	minBatchWait = time.Millisecond
	maxBatchWait = 10 * time.Millisecond
	// batchTimeout bounds a statement.
	batchTimeout = 10 * time.Second
	// maxSingles bounds how many callers run a statement of their own at a time, so that
	// callers that repeatedly wait for a lock leave connections to everybody else.
	maxSingles = 12
)

// batchFlights bounds how many statements of a kind run at a time. The fewer there are,
// the more callers gather for the next one, and the less other work waits for the
// processors.
var batchFlights = min(max(runtime.GOMAXPROCS(0)/2, 1), 4)

// batcher lets many callers that need the same database step share a statement.
//
// A caller that comes while fewer than batchFlights statements are running gets one at
// once. Callers that come while they run, and for as long again afterwards, share the
// next. So a lone caller is as quick as without a batcher, and the cost per caller falls
// as more come: most of a statement's cost does not depend on the number of callers, and
// with a pause as long as the statement itself, statements run half of the time at most.
// Each caller waits until its own part is committed and gets its own result.
//
// When a shared statement fails, each of its callers gets a statement of its own, on the
// common pool, while the batcher goes on: neither a value that the database refuses nor a
// row that somebody holds locked affects the other callers. Running the statements a
// second time must therefore change nothing.
type batcher[In, Out any] struct {
	mu      sync.Mutex
	waiting []*member[In, Out]
	flights int
	singles chan struct{}
	// pause is how long the next statement waits, in nanoseconds: as long as the last one
	// took if several shared it, otherwise not at all.
	pause atomic.Int64
}

type member[In, Out any] struct {
	in In
	// done is closed once out and err are set.
	done chan struct{}
	out  Out
	err  error
}

type batch[In, Out any] struct {
	db *postgres.DB
	// gate lets API requests go before a shared statement.
	gate *Gate
	// key returns a caller's key: no statement has the same key twice.
	key func(In) string
	// run runs the statement for all callers and returns a result for each.
	run func(ctx context.Context, on *sqlx.DB, ins []In) ([]Out, error)
}

// do runs the statement for one caller, shared with others that are waiting. When ctx
// ends do returns; the caller's part of a statement may still be carried out.
func (g *batcher[In, Out]) do(ctx context.Context, e batch[In, Out], in In) (Out, error) {
	me := &member[In, Out]{in: in, done: make(chan struct{})}
	g.mu.Lock()
	if g.singles == nil {
		g.singles = make(chan struct{}, maxSingles)
	}
	g.waiting = append(g.waiting, me)
	take := g.flights < batchFlights
	if take {
		g.flights++
	}
	g.mu.Unlock()
	if take {
		go g.work(e)
	}
	select {
	case <-me.done:
		return me.out, me.err
	case <-ctx.Done():
		var none Out
		return none, context.Cause(ctx)
	}
}

// work runs statements until no caller waits.
func (g *batcher[In, Out]) work(e batch[In, Out]) {
	for {
		pause := g.pause.Load()
		if pause > 0 && g.queued() < batchLimit {
			<-time.After(time.Duration(pause))
		}
		limit, done := batchLimit, func() {}
		if pause > 0 || g.queued() > 1 {
			limit, done = e.gate.beforeStatement()
		}
		callers := g.next(e.key, limit)
		if len(callers) == 0 {
			done()
			return
		}
		ins := make([]In, len(callers))
		for i, one := range callers {
			ins[i] = one.in
		}
		ctx, cancel := context.WithTimeout(context.Background(), batchTimeout)
		began := time.Now()
		outs, err := e.run(ctx, e.db.Engine(), ins)
		took := time.Since(began)
		cancel()
		done()
		if took = min(max(took, minBatchWait), maxBatchWait); len(callers) == 1 {
			took = 0
		}
		g.pause.Store(int64(took))
		for i, one := range callers {
			if err != nil {
				go e.alone(g.singles, one)
				continue
			}
			one.out = outs[i]
			close(one.done)
		}
	}
}

func (g *batcher[In, Out]) queued() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.waiting)
}

// next returns the callers that share the next statement; if there are none, the flight ends.
func (g *batcher[In, Out]) next(key func(In) string, limit int) []*member[In, Out] {
	g.mu.Lock()
	defer g.mu.Unlock()
	var callers, rest []*member[In, Out]
	seen := make(map[string]bool, min(len(g.waiting), limit))
	for i, one := range g.waiting {
		if len(callers) == limit {
			rest = append(rest, g.waiting[i:]...)
			break
		}
		if about := key(one.in); seen[about] {
			rest = append(rest, one)
		} else {
			seen[about] = true
			callers = append(callers, one)
		}
	}
	g.waiting = rest
	if len(callers) == 0 {
		g.flights--
	}
	return callers
}

// alone runs a statement for one caller whose shared statement failed.
func (e batch[In, Out]) alone(singles chan struct{}, one *member[In, Out]) {
	defer close(one.done)
	ctx, cancel := context.WithTimeout(context.Background(), batchTimeout)
	defer cancel()
	select {
	case singles <- struct{}{}:
		defer func() { <-singles }()
	case <-ctx.Done():
		one.err = context.Cause(ctx)
		return
	}
	outs, err := e.run(ctx, e.db.DB, []In{one.in})
	if one.err = err; err == nil {
		one.out = outs[0]
	}
}

// share runs a step of an attempt for one caller, in one statement with all others that
// reach that step at the time.
func share[In interface{ key() string }, Out any](
	ctx context.Context, s *Service, with *batcher[In, Out],
	run func(context.Context, *sqlx.DB, []In) ([]Out, error), in In,
) (Out, error) {
	return with.do(ctx, batch[In, Out]{db: s.DB, gate: s.Gate, key: In.key, run: run}, in)
}
