package postgres

import (
	"context"
	"testing"
	"time"
)

// TestLagIsNeverTooSmall: the replica's data is at most as old as the newest mark that it has
// reached; a replica that has reached none is too far behind to tell.
func TestLagIsNeverTooSmall(t *testing.T) {
	t.Parallel()
	var r replica
	begun := time.Now()
	at := func(seconds int) time.Time { return begun.Add(time.Duration(seconds) * time.Second) }
	want := func(step string, now, replayed, seconds int, caughtUp bool) {
		t.Helper()
		lag, got := r.behind(at(now), int64(replayed))
		if lag != time.Duration(seconds)*time.Second || got != caughtUp {
			t.Errorf("%s: %s and %t, want %ds and %t", step, lag, got, seconds, caughtUp)
		}
	}
	r.note(mark{at(0), 100})
	want("before the first mark", 0, 99, 0, false)
	r.note(mark{at(1), 200})
	want("still before it", 1, 99, 1, false)
	want("between two", 1, 150, 1, true)
	r.note(mark{at(2), 300})
	want("at the newest", 2, 300, 0, true)
	for i := range 100_000 {
		r.note(mark{at(3 + i), int64(301 + i)})
	}
	if len(r.marks) > markLimit {
		t.Errorf("%d marks are kept", len(r.marks))
	}
	want("standing still for a day", 100_002, 300, 100_000, true)
	want("almost there", 100_002, 100_299, 1, true)
	r.note(mark{at(100_003), 250})
	want("behind another primary, which had less", 100_003, 240, 0, false)
	want("with it", 100_004, 250, 1, true)
}

// TestWhatIsReadLaterIsNotOlder: the reads of one page change from the replica to the primary but
// not back, and choose again when a live page is refreshed.
func TestWhatIsReadLaterIsNotOlder(t *testing.T) {
	t.Parallel()
	db := &DB{replica: &replica{most: time.Minute}}
	set := func(problem string) {
		db.replica.state.Store(&ReplicaState{CaughtUp: true, Problem: problem, found: time.Now()})
	}
	want := func(step string, ctx context.Context, replica bool) {
		t.Helper()
		if got := db.choose(ctx) != nil; got != replica || Lagged(ctx) != replica {
			t.Errorf("%s: from the replica is %t, want %t", step, got, replica)
		}
	}
	set("")
	want("nothing may lag", t.Context(), false)
	page := MayLag(t.Context())
	want("the first read", page, true)
	want("what must not lag", Current(page), false)
	set("it is away")
	want("the replica is away", page, false)
	set("")
	want("it is back", page, false)
	Renew(page)
	want("a live page looks again", page, true)
	db.replica.state.Store(&ReplicaState{CaughtUp: true, found: time.Now().Add(-2 * time.Minute)})
	want("nobody has looked for long", MayLag(t.Context()), false)
	db.replica.state.Store(&ReplicaState{
		CaughtUp: true, Lag: 2 * time.Minute, found: time.Now(),
	})
	want("it is too far behind", MayLag(t.Context()), false)
}
