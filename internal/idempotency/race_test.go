package idempotency_test

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"drawbridge/internal/idempotency"
	"drawbridge/internal/lending"
	"drawbridge/internal/postgres"
)

// outcomes counts the outcomes of a race.
type outcomes struct{ ran, replayed, conflicts, others atomic.Int64 }

func (o *outcomes) add(reply idempotency.Reply, err error) {
	switch {
	case lending.ErrorCode(err) == lending.CodeIdempotencyConflict:
		o.conflicts.Add(1)
	case err != nil:
		o.others.Add(1)
	case reply.Replayed:
		o.replayed.Add(1)
	default:
		o.ran.Add(1)
	}
}

func (o *outcomes) String() string {
	return fmt.Sprintf("%d ran, %d replayed, %d conflicts, %d others",
		o.ran.Load(), o.replayed.Load(), o.conflicts.Load(), o.others.Load())
}

func TestRaceHasOneEffect(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	const rounds, racers = 5, 50
	for round := range rounds {
		request := d.request(fmt.Sprintf("key-%d", round), "c")
		var result outcomes
		var group sync.WaitGroup
		for range racers {
			group.Go(func() { result.add(d.run(request, register("x"))) })
		}
		group.Wait()
		if result.ran.Load() != 1 || result.others.Load() != 0 ||
			result.replayed.Load()+result.conflicts.Load() != racers-1 {
			t.Errorf("round %d: %s", round, &result)
		}
		if reply := d.mustRun(t, request, never(t)); string(reply.Body) != "hello x" {
			t.Errorf("the stored reply is %q", reply.Body)
		}
	}
	if got := d.count(t, "visitors"); got != rounds {
		t.Errorf("%d visitors after %d rounds, want one each", got, rounds)
	}
}

// Reading a stored reply takes the lock too, but must not look like a running request.
func TestReplaysDoNotConflict(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	request := d.request("k", "c")
	d.mustRun(t, request, register("x"))
	var result outcomes
	var group sync.WaitGroup
	for range 50 {
		group.Go(func() { result.add(d.run(request, never(t))) })
	}
	group.Wait()
	if result.replayed.Load() != 50 {
		t.Errorf("%s, want 50 replays", &result)
	}
}

// A key is used while a request runs under it and once its reply is stored, whatever the content;
// calling IsUsed does not make it used.
func TestIsUsed(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	request := d.request("k", "c")
	want := func(when string, request idempotency.Request, want bool) {
		t.Helper()
		if used, err := d.IsUsed(t.Context(), request); used != want || err != nil {
			t.Errorf("%s: used is %v, want %v (%v)", when, used, want, err)
		}
	}
	want("before", request, false)
	d.mustRun(t, request, func(tx *postgres.Tx) (idempotency.Reply, error) {
		want("while it runs", request, true)
		return register("x")(tx)
	})
	want("afterwards", request, true)
	want("of other content", d.request("k", "other"), true)
	want("another key", d.request("l", "c"), false)
	want("no key", d.request("", "c"), false)
	d.advance(25 * time.Hour)
	want("a day later", request, false)
}

// Calling IsUsed must not look like a running request.
func TestAskingDoesNotConflict(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	request := d.request("k", "c")
	const runs = 300
	refusal := lending.NewError(lending.CodeInvalidState, "no")
	var asking sync.WaitGroup
	done := make(chan struct{})
	for range 4 {
		asking.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				if _, err := d.IsUsed(t.Context(), request); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	for i := range runs {
		if _, err := d.run(request, refuse(refusal)); !errors.Is(err, refusal) {
			t.Errorf("run %d: %v, want the operation's own refusal", i, err)
			break
		}
	}
	close(done)
	asking.Wait()
}

func TestSameKeyWhileRunning(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	reply := d.mustRun(t, d.request("k", "c"), func(tx *postgres.Tx) (idempotency.Reply, error) {
		for _, content := range []string{"c", "other"} {
			_, err := d.run(d.request("k", content), never(t))
			wantCode(t, err, lending.CodeIdempotencyConflict)
		}
		d.mustRun(t, d.request("another key", "c"), register("y"))
		return register("x")(tx)
	})
	if string(reply.Body) != "hello x" {
		t.Errorf("the first request was answered %q", reply.Body)
	}
}

func TestPanicLeavesNothing(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the panic was swallowed")
			}
		}()
		_, _ = d.run(d.request("k", "c"), func(tx *postgres.Tx) (idempotency.Reply, error) {
			if _, err := register("x")(tx); err != nil {
				t.Error(err)
			}
			panic("bug")
		})
	}()
	wantFreshRun(t, d)
}

// The connection of a killed process ends like this.
func TestKilledConnectionLeavesNothing(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	_, err := d.run(d.request("k", "c"), func(tx *postgres.Tx) (idempotency.Reply, error) {
		reply, err := register("x")(tx)
		if err != nil {
			return reply, err
		}
		var backend int
		if err := tx.Get(&backend, `SELECT pg_backend_pid()`); err != nil {
			return reply, err
		}
		_, err = d.DB.Exec(`SELECT pg_terminate_backend($1, 10000)`, backend)
		return reply, err
	})
	if err == nil {
		t.Error("a request whose connection was cut succeeded")
	}
	wantFreshRun(t, d)
}

// wantFreshRun checks that the key "k" is free and nothing was left under it.
func wantFreshRun(t *testing.T, d *desk) {
	t.Helper()
	if reply := d.mustRun(t, d.request("k", "c"), register("x")); reply.Replayed {
		t.Error("a reply was stored")
	}
	if got := d.count(t, "visitors"); got != 1 {
		t.Errorf("%d visitors, want the one of the fresh run", got)
	}
}

// Two operations lock two rows in opposite order. Postgres ends one of them, which must run again
// and store its reply once.
func TestDeadlockRunsAgain(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.exec(t, `INSERT INTO visitors VALUES ('a'), ('b')`)
	var runs atomic.Int64
	var bothHoldOne sync.WaitGroup
	bothHoldOne.Add(2)
	swap := func(first, second string) func(*postgres.Tx) (idempotency.Reply, error) {
		var once sync.Once
		return func(tx *postgres.Tx) (idempotency.Reply, error) {
			runs.Add(1)
			const lock = `UPDATE visitors SET name = name WHERE name = $1`
			if _, err := tx.Exec(lock, first); err != nil {
				return idempotency.Reply{}, err
			}
			once.Do(func() {
				bothHoldOne.Done()
				bothHoldOne.Wait()
			})
			if _, err := tx.Exec(lock, second); err != nil {
				return idempotency.Reply{}, fmt.Errorf("locking %s: %w", second, err)
			}
			return register("from " + first)(tx)
		}
	}
	var result outcomes
	var group sync.WaitGroup
	group.Go(func() { result.add(d.run(d.request("ab", "c"), swap("a", "b"))) })
	group.Go(func() { result.add(d.run(d.request("ba", "c"), swap("b", "a"))) })
	group.Wait()
	if result.ran.Load() != 2 || runs.Load() < 3 {
		t.Errorf("%s in %d runs, want 2 that ran, one of them again", &result, runs.Load())
	}
	if got := d.count(t, "visitors WHERE name LIKE 'from %'"); got != 2 {
		t.Errorf("%d visitors, want one of each request", got)
	}
}
