package fleet

import (
	"context"
	"fmt"
	"time"
)

// strangerLimit is after how long the job of a process that shows no life at
// all (an earlier release, or one dead for a day) is taken for lost. It is above
// what any job takes.
const strangerLimit = 30 * time.Minute

// pulse tells whether beats have followed each other without a gap.
type pulse struct {
	last time.Time
	// run is how many did.
	run int
}

// steady notes a beat, at a time by the database's clock, and tells whether all
// who live must have shown it meanwhile: two more beats have followed one. After
// a time without the database everybody looks dead, and the first to come back
// must not believe it.
func (p *pulse) steady(at time.Time, good bool) bool {
	const enough = 2
	gap := at.Sub(p.last)
	p.last = at
	if !good || gap < 0 || gap > 2*beatEvery {
		p.run = 0
		return false
	}
	p.run++
	return p.run >= enough
}

// Rescue hands the jobs of dead processes back to the queue and returns how many.
// All is judged by the database's clock; the queue's own rescue trusts that of
// its leader's machine.
//
// A job of the queue named timed is lost when it began longer ago than limit,
// which no living process takes. Any other job is lost with its process, of
// which nothing has been heard for the time of Lost: an e-mail may take ten
// minutes to hand over, and is safe from being sent twice when its process lives
// after all.
func (s *Service) Rescue(ctx context.Context, timed string, limit time.Duration) (int64, error) {
	result, err := s.DB.ExecContext(ctx, `
		WITH lost AS (
			SELECT j.id
			  FROM river_job j
			  LEFT JOIN processes p
			    ON p.process_uid::text = j.attempted_by[array_upper(j.attempted_by, 1)]
			 WHERE j.state = 'running'
			   AND j.attempt < j.max_attempts
			   AND CASE
			       WHEN j.queue = $1
			       THEN j.attempted_at < clock_timestamp() - make_interval(secs => $2)
			       WHEN p.process_uid IS NULL
			       THEN j.attempted_at < clock_timestamp() - make_interval(secs => $4)
			       ELSE $5 AND p.last_beat_at < clock_timestamp() - make_interval(secs => $3)
			       END
			   FOR UPDATE OF j SKIP LOCKED
		)
		UPDATE river_job j
		   SET state = CASE WHEN j.metadata ? 'cancel_attempted_at' THEN 'cancelled'
		                    ELSE 'available' END::river_job_state,
		       finalized_at = CASE WHEN j.metadata ? 'cancel_attempted_at' THEN now() END,
		       errors = array_append(j.errors, jsonb_build_object(
		           'at', now(), 'attempt', j.attempt,
		           'error', 'the process ended during the run', 'trace', ''))
		  FROM lost
		 WHERE j.id = lost.id`,
		timed, limit.Seconds(), Lost.Seconds(), strangerLimit.Seconds(),
		s.steady.Load())
	if err != nil {
		return 0, fmt.Errorf("rescuing the jobs of dead processes: %w", err)
	}
	return result.RowsAffected()
}
