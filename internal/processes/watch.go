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
	// PollEvery is how often Poll is to be called.
	PollEvery = 5 * time.Second
	// SweepEvery is how often Sweep is to be called.
	SweepEvery = time.Second
	// pollTimeout bounds a poll, and a sweep. While a transaction is open, reading the running jobs
	// skips all jobs that ran since it began.
	pollTimeout = time.Minute
)

// In how many polls in a row the same must be found before something is considered lost. Polls are
// counted instead of comparing times: a clock that jumps, a database that was away and a watcher
// that was suspended itself count for one poll at most.
const (
	// deadPolls: a process has shown no new beat.
	deadPolls = int(Lost / PollEvery)
	// ownBeatPolls: the watcher's own row shows no new beat; what keeps it from beating may keep the
	// others from it.
	ownBeatPolls = int(2 * beatEvery / PollEvery)
	// undeliveredPolls: a job that the queue handed to this process, which never received it because
	// the result was lost. It is long, as the result may still arrive; lostFetchPolls is short, for
	// when it cannot.
	undeliveredPolls = int(Lost / PollEvery)
	lostFetchPolls   = 1
	// endedPolls: a job whose run here has ended. The queue retries writing that, so it is long.
	endedPolls = int(10 * time.Minute / PollEvery)
	// unknownOwnerPolls: a job of no known process (one of an earlier release, or one dead for a day);
	// it is longer than any job takes.
	unknownOwnerPolls = int(30 * time.Minute / PollEvery)
	// unbounded is for a run that is under way here.
	unbounded = math.MaxInt
	// freedSweeps: a process whose row says that it holds its lock does not. If it only lost its
	// connection, it has by then taken the lock again, or its row says that it could not.
	freedSweeps = 3
)

// Watch finds the jobs that no process vouches for any more. A process vouches for its jobs by its
// beats, as long as it lives and however long they take; this one vouches for its own by its
// Roster.
type Watch struct {
	DB *postgres.DB
	// Self is this process, and Working the jobs it works.
	Self    uuid.UUID
	Working *Roster
	// Deliveries is the queue whose attempts are recorded when they begin.
	Deliveries string
	// DeliveryTime is how long a delivery may take at most in a process of an earlier release, which
	// writes no beats.
	DeliveryTime time.Duration

	beats map[string]beat
	polls int            // their number so far
	runs  map[run]int    // by the poll that first found them
	freed map[string]int // in how many sweeps in a row
	// next is when the running jobs are to be read again if no process dies, and dead are the
	// processes that were dead when they were last read.
	next time.Time
	pace postgres.Throttle
	dead map[string]bool
}

// beat is the last beat of a process, and how many polls have found no newer one.
type beat struct {
	at    time.Time
	polls int
}

// run is a run of a job, according to the queue.
type run struct {
	ID          int64     `db:"id"`
	Attempt     int       `db:"attempt"`
	AttemptedAt time.Time `db:"attempted_at"`
	Queue       string    `db:"queue"`
	Process     string    `db:"process"`
}

// Poll hands the jobs that no process vouches for back to the queue, and returns how many. It must
// not be called concurrently.
//
// Where reading the running jobs is expensive, it reads them when a process dies, and otherwise for
// a fiftieth of the time: a job that was lost in another way waits for longer.
func (w *Watch) Poll(ctx context.Context) (int64, error) {
	ctx, cancel := context.WithTimeout(ctx, pollTimeout)
	defer cancel()
	ended := w.Working.ended()
	news, err := w.readBeats(ctx)
	if err == nil && !news && time.Now().Before(w.next) {
		return 0, nil
	}
	var running []run
	if err == nil {
		running, err = w.running(ctx)
	}
	if err != nil {
		w.resetCounts() // no process could show that it lives meanwhile
		return 0, err
	}
	open := make(map[int64]bool, len(running))
	for _, one := range running {
		open[one.ID] = true
	}
	w.Working.forget(slices.DeleteFunc(ended, func(id int64) bool { return open[id] }))
	lost := w.findLost(running)
	if len(lost) == 0 {
		return 0, nil
	}
	count, err := w.rescue(ctx, lost)
	if err != nil || count < int64(len(lost)) {
		w.dead = nil // the next poll handles the rest
	}
	return count, err
}

// readBeats reads the beats of all processes, and reports whether one has died since the running
// jobs were last read.
func (w *Watch) readBeats(ctx context.Context) (news bool, err error) {
	var processes []struct {
		UID        string    `db:"process_uid"`
		LastBeatAt time.Time `db:"last_beat_at"`
	}
	err = w.DB.SelectContext(ctx, &processes,
		`SELECT process_uid::text AS process_uid, last_beat_at FROM processes`)
	if err != nil {
		return false, fmt.Errorf("reading the beats of the processes: %w", err)
	}
	w.polls++
	beats := make(map[string]beat, len(processes))
	for _, process := range processes {
		now := beat{at: process.LastBeatAt}
		if before, known := w.beats[process.UID]; known && before.at.Equal(now.at) {
			now.polls = before.polls + 1
		}
		beats[process.UID] = now
		news = news || now.polls >= deadPolls && !w.dead[process.UID]
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

// Sweep hands back the jobs of processes whose locks the server has freed: they are dead, so their
// beats need not be awaited. It must not be called concurrently, nor at the same time as Poll.
//
// A process whose own lock is not shown draws no conclusions: the server may have just started,
// where the others have not taken their locks again either.
func (w *Watch) Sweep(ctx context.Context) (int64, error) {
	ctx, cancel := context.WithTimeout(ctx, pollTimeout)
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
	return w.rescueJobsOf(ctx, dead)
}

// rescueJobsOf hands back the jobs of dead processes and marks their rows as holding no lock. A
// process that holds its lock nevertheless corrects that with its next beat.
func (w *Watch) rescueJobsOf(ctx context.Context, dead []string) (int64, error) {
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

func (w *Watch) findLost(running []run) []run {
	self := w.Self.String()
	own, known := w.beats[self]
	if !known || own.polls > ownBeatPolls {
		w.resetCounts()
		w.beats = map[string]beat{self: own}
		return nil
	}
	w.dead = make(map[string]bool)
	for process, last := range w.beats {
		w.dead[process] = last.polls >= deadPolls
	}
	var lost []run
	runs := make(map[run]int, len(running))
	for _, one := range running {
		if theirs, known := w.beats[one.Process]; known && one.Process != self {
			if theirs.polls >= deadPolls {
				lost = append(lost, one)
			}
			continue
		}
		one.AttemptedAt = one.AttemptedAt.UTC() // so that equal times are equal map keys
		first, found := w.runs[one]
		most := w.maxPolls(one)
		if !found || most == unbounded {
			first = w.polls
		}
		runs[one] = first
		if w.polls-first >= most {
			lost = append(lost, one)
		}
	}
	w.runs = runs
	return lost
}

// resetCounts restarts the counts, except those that take many minutes: a database that is briefly
// away now and then would keep these from ever completing.
func (w *Watch) resetCounts() {
	w.beats = nil
	maps.DeleteFunc(w.runs, func(one run, _ int) bool { return w.maxPolls(one) < endedPolls })
}

// maxPolls returns for how many polls a run of this process, or of no known one, may be found.
func (w *Watch) maxPolls(one run) int {
	here, ended := w.Working.state(one.ID, one.AttemptedAt)
	switch own := one.Process == w.Self.String(); {
	case own && here:
		return unbounded
	case own && ended:
		return endedPolls
	case own && w.Working.inLostFetch(one.Queue, one.AttemptedAt):
		return lostFetchPolls
	case own:
		return undeliveredPolls
	case one.Queue == w.Deliveries:
		return int(w.DeliveryTime / PollEvery)
	}
	return unknownOwnerPolls
}

// rescue hands runs back, unless they have ended meanwhile. A delivery whose process records the
// attempts it begins, and has not recorded this one, keeps its number: the run is uncounted, and
// the next one makes the attempt.
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
