package processes

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/lib/pq"

	"drawbridge/internal/postgres"
)

const (
	// LookEvery is how often a Watch is to look.
	LookEvery = 5 * time.Second
	// SweepEvery is how often it is to sweep.
	SweepEvery = time.Second
	// lookTime is how long a look may take, and a sweep. Beside an open transaction all jobs
	// that ran since it began are passed by.
	lookTime = time.Minute
)

// Over how many looks the same must be found before something is taken for lost.
// Looks are counted, not times compared: a clock that jumps, a database that was away
// and a watcher that slept itself count for one look at most.
const (
	// deadLooks are without a beat of a process.
	deadLooks = int(Lost / LookEvery)
	// deafLooks are without a beat of the watcher's own: whatever keeps it from
	// beating may keep the others from it.
	deafLooks = int(2 * beatEvery / LookEvery)
	// strayLooks are of a job that the queue gave to this process, which never heard
	// of it: the queue's answer was lost. It is long, as the answer may yet come, and
	// brokenLooks not, where it is known that it cannot.
	strayLooks  = int(Lost / LookEvery)
	brokenLooks = 1
	// endedLooks are of a job whose run here ended. The queue writes that again and
	// again, so it is long.
	endedLooks = int(10 * time.Minute / LookEvery)
	// strangerLooks are of a job that belongs to nobody known (an earlier release's, or
	// that of a process dead for a day); it is above what any job takes.
	strangerLooks = int(30 * time.Minute / LookEvery)
	// unbounded is for a run that is under way here.
	unbounded = math.MaxInt
	// freedSweeps are without the lock of a process whose row says that it holds it. One that
	// lost its connection alone has taken it again by then, or says that it could not.
	freedSweeps = 3
)

// Watch finds the jobs that nobody vouches for any more. A process vouches for its
// jobs by its beats, as long as it lives and however long they take, and for its own
// by its Roster.
type Watch struct {
	DB *postgres.DB
	// Self is this process, and Working what it works.
	Self    uuid.UUID
	Working *Roster
	// Deliveries is the queue whose attempts are noted when they begin.
	Deliveries string
	// DeliveryTime is what a delivery of an earlier release takes at most, whose
	// processes show no life.
	DeliveryTime time.Duration

	beats map[string]beat
	looks int            // so far
	runs  map[run]int    // by the look that found them first
	freed map[string]int // in so many sweeps
	// next is when the jobs that run are to be read again if nobody dies, and dead are those who
	// were when they were read last.
	next time.Time
	pace postgres.Pace
	dead map[string]bool
}

// beat is the last one of a process, and how many looks found no other.
type beat struct {
	at    time.Time
	looks int
}

// run is one of a job, as the queue has it.
type run struct {
	ID          int64     `db:"id"`
	Attempt     int       `db:"attempt"`
	AttemptedAt time.Time `db:"attempted_at"`
	Queue       string    `db:"queue"`
	Process     string    `db:"process"`
}

// Look hands the jobs that nobody vouches for back to the queue, and returns how
// many. It must not be called twice at a time.
//
// Where the jobs that run are dear to read, they are read when a process dies, and in a fiftieth
// of the time beside that: a job that was lost otherwise waits for longer.
func (w *Watch) Look(ctx context.Context) (int64, error) {
	ctx, cancel := context.WithTimeout(ctx, lookTime)
	defer cancel()
	ended := w.Working.ended()
	news, err := w.look(ctx)
	if err == nil && !news && time.Now().Before(w.next) {
		return 0, nil
	}
	var running []run
	if err == nil {
		running, err = w.running(ctx)
	}
	if err != nil {
		w.interrupt() // meanwhile nobody could be seen to live
		return 0, err
	}
	open := make(map[int64]bool, len(running))
	for _, one := range running {
		open[one.ID] = true
	}
	w.Working.forget(slices.DeleteFunc(ended, func(id int64) bool { return open[id] }))
	lost := w.judge(running)
	if len(lost) == 0 {
		return 0, nil
	}
	count, err := w.rescue(ctx, lost)
	if err != nil || count < int64(len(lost)) {
		w.dead = nil // the next look sees to what is left
	}
	return count, err
}

// look reads the beats of all processes, and tells whether somebody died for whom the jobs that
// run were not read yet.
func (w *Watch) look(ctx context.Context) (news bool, err error) {
	var processes []struct {
		UID        string    `db:"process_uid"`
		LastBeatAt time.Time `db:"last_beat_at"`
	}
	err = w.DB.SelectContext(ctx, &processes,
		`SELECT process_uid::text AS process_uid, last_beat_at FROM processes`)
	if err != nil {
		return false, fmt.Errorf("reading the beats of the processes: %w", err)
	}
	w.looks++
	beats := make(map[string]beat, len(processes))
	for _, process := range processes {
		now := beat{at: process.LastBeatAt}
		if before, known := w.beats[process.UID]; known && before.at.Equal(now.at) {
			now.looks = before.looks + 1
		}
		beats[process.UID] = now
		news = news || now.looks >= deadLooks && !w.dead[process.UID]
	}
	w.beats = beats
	return news, nil
}

func (w *Watch) running(ctx context.Context) ([]run, error) {
	began := time.Now()
	var running []run
	err := w.DB.SelectContext(ctx, &running, `
		SELECT id,
		       attempt,
		       attempted_at,
		       queue,
		       coalesce(attempted_by[array_upper(attempted_by, 1)], '') AS process
		  FROM river_job
		 WHERE state = 'running'
		   AND attempted_at IS NOT NULL`)
	if err != nil {
		return nil, fmt.Errorf("reading the jobs that run: %w", err)
	}
	w.next = time.Now().Add(w.pace.Rest(time.Since(began)))
	return running, nil
}

// Sweep hands back the jobs of processes whose locks the server has freed: those are dead, and
// nobody need wait for their beats. It must not be called twice at a time, nor beside Look.
//
// What a process sees while the server does not show its own lock may be a server that
// has just started, where the others have not taken theirs again either.
func (w *Watch) Sweep(ctx context.Context) (int64, error) {
	ctx, cancel := context.WithTimeout(ctx, lookTime)
	defer cancel()
	var locks []struct {
		Process string `db:"process"`
		Held    bool   `db:"held"`
	}
	err := w.DB.SelectContext(ctx, &locks, `
		SELECT process_uid::text AS process,
		       `+postgres.LockHeld(`lock_key`)+` AS held
		  FROM processes
		 WHERE lock_key IS NOT NULL`)
	if err != nil {
		w.freed = nil
		return 0, fmt.Errorf("reading the locks of the processes: %w", err)
	}
	freed, own := map[string]int{}, false
	var dead []string
	for _, lock := range locks {
		switch {
		case lock.Held:
			own = own || lock.Process == w.Self.String()
			continue
		case w.freed[lock.Process]+1 >= freedSweeps:
			dead = append(dead, lock.Process)
		}
		freed[lock.Process] = w.freed[lock.Process] + 1
	}
	if w.freed = freed; !own {
		w.freed = nil
		return 0, nil
	}
	if len(dead) == 0 {
		return 0, nil
	}
	return w.bury(ctx, dead)
}

// bury hands back the jobs of dead processes. Their rows say then that they hold no lock: who
// does all the same says so again by its next beat.
func (w *Watch) bury(ctx context.Context, dead []string) (int64, error) {
	running, err := w.running(ctx)
	if err != nil {
		return 0, err
	}
	lost := slices.DeleteFunc(running, func(one run) bool {
		return !slices.Contains(dead, one.Process)
	})
	var count int64
	if len(lost) > 0 {
		if count, err = w.rescue(ctx, lost); err != nil {
			return 0, err
		}
	}
	_, err = w.DB.ExecContext(ctx, `
		UPDATE processes SET lock_key = NULL WHERE process_uid::text = ANY ($1)`, pq.Array(dead))
	if err != nil {
		return count, fmt.Errorf("burying dead processes: %w", err)
	}
	return count, nil
}

func (w *Watch) judge(running []run) []run {
	self := w.Self.String()
	own, known := w.beats[self]
	if !known || own.looks > deafLooks {
		w.interrupt()
		w.beats = map[string]beat{self: own}
		return nil
	}
	w.dead = make(map[string]bool)
	for process, last := range w.beats {
		w.dead[process] = last.looks >= deadLooks
	}
	var lost []run
	runs := make(map[run]int, len(running))
	for _, one := range running {
		if theirs, known := w.beats[one.Process]; known && one.Process != self {
			if theirs.looks >= deadLooks {
				lost = append(lost, one)
			}
			continue
		}
		one.AttemptedAt = one.AttemptedAt.UTC() // to be equal in a map
		first, found := w.runs[one]
		most := w.most(one)
		if !found || most == unbounded {
			first = w.looks
		}
		runs[one] = first
		if w.looks-first >= most {
			lost = append(lost, one)
		}
	}
	w.runs = runs
	return lost
}

// interrupt begins to count again, but for what waits for many minutes: a database that is away
// now and then would keep that for ever.
func (w *Watch) interrupt() {
	w.beats = nil
	maps.DeleteFunc(w.runs, func(one run, _ int) bool { return w.most(one) < endedLooks })
}

// most is in how many looks a run may be found that is this process's, or of nobody known.
func (w *Watch) most(one run) int {
	here, ended := w.Working.state(one.ID, one.AttemptedAt)
	switch own := one.Process == w.Self.String(); {
	case own && here:
		return unbounded
	case own && ended:
		return endedLooks
	case own && w.Working.broke(one.Queue, one.AttemptedAt):
		return brokenLooks
	case own:
		return strayLooks
	case one.Queue == w.Deliveries:
		return int(w.DeliveryTime / LookEvery)
	}
	return strangerLooks
}

// rescue hands runs back, unless they ended meanwhile. A delivery whose process
// notes what it begins, and has not noted this one, keeps its number: the run is taken
// off again, and the next one makes the attempt.
func (w *Watch) rescue(ctx context.Context, lost []run) (int64, error) {
	ids := make([]int64, len(lost))
	attempts := make([]int, len(lost))
	times := make([]time.Time, len(lost))
	for i, one := range lost {
		ids[i], attempts[i], times[i] = one.ID, one.Attempt, one.AttemptedAt
	}
	result, err := w.DB.ExecContext(ctx, `
		WITH lost AS (
			SELECT j.id,
			       j.queue = $4 AND coalesce(p.notes_attempts, false) AND NOT EXISTS (
			           SELECT 1
			             FROM begun_attempts b
			            WHERE b.delivery_uid = (j.args ->> 'delivery_uid')::uuid
			              AND b.number = (j.args ->> 'number')::integer) AS unused
			  FROM unnest($1::bigint[], $2::integer[], $3::timestamptz[])
			    AS l (id, attempt, attempted_at)
			  JOIN river_job j USING (id, attempt, attempted_at)
			  LEFT JOIN processes p
			    ON p.process_uid::text = j.attempted_by[array_upper(j.attempted_by, 1)]
			 WHERE j.state = 'running'
			   FOR UPDATE OF j SKIP LOCKED
		)
		UPDATE river_job j
		   SET state = CASE WHEN j.metadata ? 'cancel_attempted_at' THEN 'cancelled'
		                    WHEN j.attempt >= j.max_attempts AND NOT lost.unused THEN 'discarded'
		                    ELSE 'available' END::river_job_state,
		       attempt = j.attempt - lost.unused::integer,
		       finalized_at = CASE WHEN j.metadata ? 'cancel_attempted_at'
		                             OR j.attempt >= j.max_attempts AND NOT lost.unused
		                           THEN now() END,
		       errors = array_append(j.errors, jsonb_build_object(
		           'at', now(), 'attempt', j.attempt,
		           'error', 'the process ended during the run', 'trace', ''))
		  FROM lost
		 WHERE j.id = lost.id`,
		pq.Array(ids), pq.Array(attempts), pq.Array(times), w.Deliveries)
	if err != nil {
		return 0, fmt.Errorf("rescuing the jobs of dead processes: %w", err)
	}
	return result.RowsAffected()
}
