package processes

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"drawbridge/internal/postgres"
	"drawbridge/internal/postgres/pgtest"
	"drawbridge/internal/waittest"
)

// watched is a running job and the processes around it.
type watched struct {
	*Service

	watch   *Watch
	self    Process
	others  []Process // that beat
	sparing bool      // rests after a slow poll, as happens on a busy machine
}

func newWatched(t *testing.T) *watched {
	t.Helper()
	w := &watched{Service: &Service{DB: pgtest.New(t)}}
	w.self = w.New([]string{"worker"}, "v")
	w.watch = &Watch{
		DB: w.DB, Self: w.self.UID, Working: &w.Working,
		Deliveries: "webhook", DeliveryTime: 65 * time.Second,
	}
	return w
}

// another adds a process that has beaten once.
func (w *watched) another(t *testing.T) Process {
	t.Helper()
	process := w.New([]string{"worker"}, "v")
	if err := w.Beat(t.Context(), process); err != nil {
		t.Fatal(err)
	}
	return process
}

// claim gives a job of a delivery to a process and returns its key and time.
func (w *watched) claim(t *testing.T, queue, process string) (id int64, at time.Time) {
	t.Helper()
	err := w.DB.QueryRowContext(t.Context(), `
		INSERT INTO river_job (state, queue, kind, args, attempt, max_attempts, attempted_by,
		                       attempted_at)
		VALUES ('running', $1, 'any', jsonb_build_object('delivery_uid', $2::text, 'number', 1), 1, 25,
		        ARRAY['before', $3], now() - interval '3 hours')
		RETURNING id, attempted_at`, queue, uuid.NewString(), process).Scan(&id, &at)
	if err != nil {
		t.Fatal(err)
	}
	return id, at
}

// look polls that many times, with a beat of each live process before every third poll, and returns
// how many jobs were handed back.
func (w *watched) look(t *testing.T, looks int) (rescued int64) {
	t.Helper()
	for i := range looks {
		for _, process := range append(w.others, w.self) {
			if i%3 > 0 {
				break
			}
			if err := w.Beat(t.Context(), process); err != nil {
				t.Fatal(err)
			}
		}
		if !w.sparing {
			w.watch.next = time.Time{}
		}
		count, err := w.watch.Poll(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		rescued += count
	}
	return rescued
}

func (w *watched) exec(t *testing.T, statement string, args ...any) {
	t.Helper()
	pgtest.Exec(t, w.DB, statement, args...)
}

// job returns the state of the only job, and how many runs it has had.
func (w *watched) job(t *testing.T) (state string, attempt int) {
	t.Helper()
	err := w.DB.QueryRowContext(t.Context(), `SELECT state, attempt FROM river_job`).
		Scan(&state, &attempt)
	if err != nil {
		t.Fatal(err)
	}
	return state, attempt
}

// TestWatch polls jobs of processes that beat, that stopped beating, and that never did. All began
// three hours ago by the database's clock, which proves nothing.
func TestWatch(t *testing.T) {
	t.Parallel()
	const began = `INSERT INTO begun_attempts
		SELECT (args ->> 'delivery_uid')::uuid, now(), 1, id, attempted_at, now() FROM river_job`
	for _, test := range []struct {
		name, queue string
		owner       string
		// also is run on the database before the first poll.
		also    string
		looks   int
		want    string
		attempt int
	}{
		{name: "mail, living", queue: "email", owner: "living", looks: 40, want: "running", attempt: 1},
		{name: "mail, dead", queue: "email", owner: "dead", looks: 13, want: "available", attempt: 1},
		{
			name: "mail, not long enough", queue: "email", owner: "dead",
			looks: 12, want: "running", attempt: 1,
		},
		{
			name: "cancelled", queue: "email", owner: "dead", looks: 13, want: "cancelled", attempt: 1,
			also: `UPDATE river_job SET metadata = '{"cancel_attempted_at": "2026-01-01T00:00:00Z"}'`,
		},
		{
			name: "out of runs", queue: "email", owner: "dead", looks: 13, want: "discarded", attempt: 25,
			also: `UPDATE river_job SET attempt = 25`,
		},
		{
			name: "mail, unknown for long", queue: "email", owner: "unknown",
			looks: 361, want: "available", attempt: 1,
		},
		{
			name: "delivery, living", queue: "webhook", owner: "living",
			looks: 40, want: "running", attempt: 1,
		},
		{
			name: "delivery, dead before it began", queue: "webhook", owner: "dead",
			looks: 13, want: "available",
		},
		{
			name: "delivery, dead after it began", queue: "webhook", owner: "dead", looks: 13,
			want: "available", attempt: 1, also: began,
		},
		{
			name: "delivery, dead, notes nothing", queue: "webhook", owner: "dead", looks: 13,
			want: "available", attempt: 1, also: `UPDATE processes SET notes_attempts = false`,
		},
		{
			name: "delivery, unknown", queue: "webhook", owner: "unknown",
			looks: 14, want: "available", attempt: 1,
		},
		{
			name: "own, worked", queue: "webhook", owner: "working",
			looks: 200, want: "running", attempt: 1,
		},
		{
			name: "own, just ended", queue: "webhook", owner: "ended",
			looks: 100, want: "running", attempt: 1,
		},
		{name: "own, ended long ago", queue: "webhook", owner: "ended", looks: 121, want: "available"},
		{name: "own, never heard of", queue: "webhook", owner: "stray", looks: 13, want: "available"},
		{name: "own, its answer lost", queue: "webhook", owner: "lost", looks: 2, want: "available"},
		{
			name: "own, not long enough", queue: "webhook", owner: "lost",
			looks: 1, want: "running", attempt: 1,
		},
		{
			name: "own, another's answer lost", queue: "webhook", owner: "other",
			looks: 12, want: "running", attempt: 1,
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			w := newWatched(t)
			owner := map[string]string{"unknown": "somebody"}[test.owner]
			switch test.owner {
			case "living":
				w.others = append(w.others, w.another(t))
				owner = w.others[0].UID.String()
			case "dead":
				owner = w.another(t).UID.String()
			case "working", "ended", "stray", "lost", "other":
				owner = w.self.UID.String()
			}
			id, at := w.claim(t, test.queue, owner)
			switch test.owner {
			case "working":
				defer w.Working.Work(id, at)()
			case "ended":
				w.Working.Work(id, at)()
			case "lost":
				w.Working.Work(id, at.Add(-time.Second))() // the run before this one
				w.Working.FetchLost(test.queue, at, at)
			case "other":
				w.Working.FetchLost("email", at, at)
				w.Working.FetchLost(test.queue, at.Add(time.Minute), at.Add(2*time.Minute))
			}
			if test.also != "" {
				w.exec(t, test.also)
			}
			rescued := w.look(t, test.looks)
			state, attempt := w.job(t)
			if state != test.want || attempt != test.attempt || (rescued == 1) != (state != "running") {
				t.Errorf("%d were rescued, the job is %s with %d runs, want %s with %d",
					rescued, state, attempt, test.want, test.attempt)
			}
		})
	}
}

// dearLook polls once while reading the running jobs takes a second and a half.
func (w *watched) dearLook(t *testing.T) {
	t.Helper()
	blocked := pgtest.Begin(t, w.DB, `LOCK TABLE river_job`)
	var looking sync.WaitGroup
	looking.Go(func() { w.look(t, 1) })
	pgtest.WaitForLock(t, w.DB)
	if _, err := blocked.ExecContext(t.Context(), `SELECT pg_sleep(1.5)`); err != nil {
		t.Fatal(err)
	}
	if err := blocked.Rollback(); err != nil {
		t.Fatal(err)
	}
	looking.Wait()
}

// TestWatchSparesWhatIsDear: while reading the running jobs is expensive, they are read when a
// process dies, and otherwise for a fiftieth of the time.
func TestWatchSparesWhatIsDear(t *testing.T) {
	t.Parallel()
	w := newWatched(t)
	w.sparing = true
	waittest.Until(t, "a look is quick, as on a busy machine not each is", func() bool {
		w.watch.next = time.Time{}
		began := time.Now()
		w.look(t, 1)
		return time.Since(began) < 50*time.Millisecond
	})
	if w.watch.next.After(time.Now()) {
		t.Fatalf("a quick look is followed by another only at %v", w.watch.next)
	}
	w.dearLook(t)
	if !w.watch.next.Before(time.Now().Add(time.Minute)) {
		t.Fatalf("after one look that took long, as of a database that fails over, the next is at %v",
			w.watch.next)
	}
	w.dearLook(t)
	if rest := time.Until(w.watch.next); rest < 30*time.Second {
		t.Fatalf("after two looks of more than a second the next one is in %v", rest)
	}
	w.watch.next = time.Now().Add(time.Hour)
	stray, _ := w.claim(t, "email", w.self.UID.String())
	if count := w.look(t, 100); count != 0 {
		t.Errorf("%d jobs were read while that was to be spared", count)
	}
	dead := w.another(t)
	w.exec(t, `UPDATE river_job SET attempted_by = ARRAY[$2] WHERE id = $1`, stray, dead.UID.String())
	if count := w.look(t, deadPolls+1); count != 1 {
		t.Errorf("%d jobs of a process that died went back, want 1", count)
	}
	if count := w.look(t, 10); count != 0 || !w.watch.dead[dead.UID.String()] {
		t.Errorf("%d more jobs of the dead process", count)
	}
}

// TestWatchJudgesNobodyWhileItIsDeaf: a watcher that cannot poll, or whose own beats are missing,
// restarts its counts.
func TestWatchJudgesNobodyWhileItIsDeaf(t *testing.T) {
	t.Parallel()
	w := newWatched(t)
	dead := w.another(t)
	w.claim(t, "email", dead.UID.String())
	away, cancel := context.WithCancel(t.Context())
	cancel()
	for _, looks := range []int{10, 12} {
		if w.look(t, looks) != 0 {
			t.Error("what was counted before the database was away counts")
		}
		if _, err := w.watch.Poll(away); err == nil {
			t.Fatal("a look without a database sees something")
		}
	}
	w.look(t, 4)
	for range 100 { // nobody can write meanwhile
		if count, err := w.watch.Poll(t.Context()); err != nil || count > 0 {
			t.Fatalf("a watcher that is not heard handed %d jobs back (%v)", count, err)
		}
	}
	if w.look(t, 12) != 0 {
		t.Error("what was counted while it was not heard counts")
	}
	if w.look(t, 1) != 1 {
		t.Error("the job of a dead process stays where it is")
	}
}

// TestWatchCountsOn: a job that is handed back ten minutes after its end does not wait longer
// because the database is away now and then, or because the running jobs are read seldom.
func TestWatchCountsOn(t *testing.T) {
	t.Parallel()
	w := newWatched(t)
	id, at := w.claim(t, "webhook", w.self.UID.String())
	end := w.Working.Work(id, at)
	w.look(t, 2*endedPolls)
	end()
	away, cancel := context.WithCancel(t.Context())
	cancel()
	early := w.look(t, endedPolls/2)
	if _, err := w.watch.Poll(away); err == nil {
		t.Fatal("a look without a database sees something")
	}
	w.sparing, w.watch.next = true, time.Now().Add(time.Hour)
	early += w.look(t, endedPolls/2-2)
	w.sparing = false
	if early += w.look(t, 1); early != 0 {
		t.Error("the job went back too early")
	}
	if w.look(t, 1) != 1 {
		t.Error("the job of a run that ended long ago stays where it is")
	}
}

// TestSweep: the jobs of a process whose lock the server has freed go back within seconds, while by
// its beats it still counts as living; those of a process that holds its lock, never held one, or
// only lost its connection, stay.
func TestSweep(t *testing.T) {
	t.Parallel()
	w := newWatched(t)
	held := make(map[uuid.UUID]*postgres.Lock)
	lock := func(process Process) {
		t.Helper()
		// The server frees the lock a moment after its connection has closed.
		waittest.Until(t, "the lock is free", func() bool {
			made, err := w.DB.Lock(t.Context(), lockKey(process.UID))
			held[process.UID] = made
			return err == nil
		})
		w.lockKey.Store(lockKey(process.UID))
		if err := w.Beat(t.Context(), process); err != nil {
			t.Fatal(err)
		}
		w.lockKey.Store(0)
	}
	free := func(process Process) {
		t.Helper()
		if err := held[process.UID].Free(); err != nil {
			t.Fatal(err)
		}
		waittest.Until(t, "the server has freed the lock", func() bool {
			return pgtest.Value[bool](t, w.DB, `
				SELECT NOT EXISTS (
					SELECT FROM pg_locks
					 WHERE locktype = 'advisory'
					   AND classid::bigint << 32 | objid::bigint = $1)`, lockKey(process.UID))
		})
	}
	sweep := func(times int) (rescued int64) {
		t.Helper()
		for range times {
			count, err := w.watch.Sweep(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			rescued += count
		}
		return rescued
	}
	dead, living, lockless := w.another(t), w.another(t), w.another(t)
	for _, process := range []Process{dead, living, lockless} {
		w.claim(t, "email", process.UID.String())
	}
	lock(dead)
	lock(living)
	if count := sweep(10); count != 0 {
		t.Errorf("%d jobs went back while nobody had died", count)
	}
	free(dead)
	if count := sweep(10); count != 0 {
		t.Errorf("a process that does not see its own lock handed %d jobs back", count)
	}
	lock(w.self)
	if count := sweep(freedSweeps - 1); count != 0 {
		t.Errorf("%d jobs went back before their process could take its lock again", count)
	}
	free(living)
	if count := sweep(1); count != 1 {
		t.Errorf("%d jobs of the dead process went back, want 1", count)
	}
	lock(living) // on a new connection
	if count := sweep(10); count != 0 {
		t.Errorf("%d jobs of living processes went back", count)
	}
	for _, process := range []Process{living, w.self} {
		free(process)
	}
	var owner string
	err := w.DB.GetContext(t.Context(), &owner, `
		SELECT attempted_by[2] FROM river_job WHERE state = 'available'`)
	if err != nil || owner != dead.UID.String() {
		t.Errorf("the job that went back was of %s (%v), want %s", owner, err, dead.UID)
	}
}

// TestRunHoldsALock: a process has its lock while it runs, takes it again when its connection is
// terminated, and leaves none behind.
func TestRunHoldsALock(t *testing.T) {
	t.Parallel()
	w := newWatched(t)
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { w.Run(ctx, w.self) })
	// holder returns the server process that holds the lock named in the row, 0 for none.
	holder := func() (pid int) {
		err := w.DB.GetContext(t.Context(), &pid, `
			SELECT coalesce(max(l.pid), 0)
			  FROM processes p
			  JOIN pg_locks l ON classid::bigint << 32 | objid::bigint = lock_key
			 WHERE locktype = 'advisory' AND process_uid = $1`, w.self.UID)
		if err != nil {
			t.Fatal(err)
		}
		return pid
	}
	first := 0
	waittest.Until(t, "the lock is held", func() bool { first = holder(); return first != 0 })
	w.exec(t, `SELECT pg_terminate_backend($1)`, first)
	waittest.Until(t, "the lock is held again", func() bool {
		now := holder()
		return now != 0 && now != first
	})
	cancel()
	running.Wait()
	waittest.Until(t, "the lock is freed", func() bool {
		var left int
		err := w.DB.GetContext(t.Context(), &left, `
			SELECT count(*) FROM pg_locks l JOIN pg_database d ON d.oid = l.database
			 WHERE locktype = 'advisory' AND datname = current_database()`)
		if err != nil {
			t.Fatal(err)
		}
		return left == 0
	})
}

// TestWatchBearsALostRow: a clock that jumps a day ahead makes processes forget each other until
// the next beat.
func TestWatchBearsALostRow(t *testing.T) {
	t.Parallel()
	w := newWatched(t)
	w.others = append(w.others, w.another(t))
	w.claim(t, "webhook", w.others[0].UID.String())
	w.look(t, 40)
	w.exec(t, `DELETE FROM processes WHERE process_uid = $1`, w.others[0].UID)
	if count, err := w.watch.Poll(t.Context()); err != nil || count > 0 {
		t.Errorf("%d jobs of a living process were handed back (%v)", count, err)
	}
}

// TestLeave: a process that stops while it has running jobs leaves its row, by which others find
// them.
func TestLeave(t *testing.T) {
	t.Parallel()
	for jobs, want := range []int{0, 1} {
		w := newWatched(t)
		process := w.another(t)
		for range jobs {
			w.claim(t, "email", process.UID.String())
		}
		w.leave(t.Context(), process)
		var rows int
		err := w.DB.GetContext(t.Context(), &rows, `SELECT count(*) FROM processes`)
		if err != nil || rows != want {
			t.Errorf("with %d jobs, %d rows stay (%v)", jobs, rows, err)
		}
	}
}

// TestRoster forgets runs that ended, but not jobs that run again.
func TestRoster(t *testing.T) {
	t.Parallel()
	var r Roster
	at := time.Now()
	r.Work(1, at)()
	r.Work(2, at)()
	ended := r.ended()
	defer r.Work(2, at)()
	r.forget(ended)
	if runs, ended := r.state(1, at); runs || ended {
		t.Error("job 1 is remembered")
	}
	if runs, ended := r.state(2, at); !runs || ended {
		t.Error("job 2 runs again and is forgotten")
	}
}
