package delivery

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jmoiron/sqlx"

	"drawbridge/internal/postgres"
)

// An attempt is noted as begun right before its request may leave, and the note goes
// with the record of its outcome. So what a dead process leaves behind tells which
// numbers may be used up: a job without a note is handed back as if it had not
// run (see internal/fleet), and an attempt with one is unknown since it began.

// noteBegun notes attempts and returns those that may go ahead. Of the others, another
// run has the job, because this one was thought not to live; or the run of another
// job, where a delivery has two by a mischance, has noted the attempt first, or has
// made it meanwhile: the lock shows the delivery as it is now.
//
//nolint:unqueryvet // what is unnested has the columns that are named with it
const noteBegun = `
	WITH wanted AS MATERIALIZED (
		SELECT *
		  FROM unnest($1::uuid[], $2::timestamptz[], $3::integer[], $4::bigint[], $5::integer[],
		              $6::timestamptz[], $7::timestamptz[])
		    AS w (delivery_uid, created_at, number, job_id, run, claimed_at, started_at)
	)
	INSERT INTO begun_attempts AS b (
	       delivery_uid, created_at, number, job_id, claimed_at, started_at)
	SELECT w.delivery_uid, w.created_at, w.number, w.job_id, w.claimed_at, w.started_at
	  FROM wanted w
	 CROSS JOIN LATERAL (
	           SELECT 1
	             FROM deliveries
	            WHERE delivery_uid = w.delivery_uid
	              AND created_at = w.created_at
	              AND CASE WHEN state IN ('pending', 'retrying')
	                       THEN attempt_count = w.number - 1 ELSE false END
	            LIMIT 1
	              FOR SHARE) AS d
	  LEFT JOIN river_job j ON j.id = w.job_id
	 WHERE w.job_id = 0
	    OR j.state = 'running' AND j.attempt = w.run AND j.attempted_at = w.claimed_at
	ON CONFLICT (delivery_uid) DO UPDATE
	   SET created_at = excluded.created_at,
	       number = excluded.number,
	       job_id = excluded.job_id,
	       claimed_at = excluded.claimed_at,
	       started_at = excluded.started_at
	 WHERE b.number < excluded.number
	    OR b.job_id = excluded.job_id AND b.claimed_at = excluded.claimed_at
	RETURNING delivery_uid`

// beginLife is how long after it was asked an attempt may begin: well before a process
// that is frozen meanwhile is taken for dead (see internal/fleet), and another one
// takes its attempts for unknown.
const beginLife = 30 * time.Second

// errLate ends an attempt that a process comes to too late.
var errLate = errors.New("the process was not running for a while")

// begin notes that the request of an attempt may leave its place from now on, in
// company if there is any, and tells whether it may: not when another run has the job.
// The end of ctx does not stop it, so that nothing is noted after it returned.
func (s *Service) begin(ctx context.Context, place *slot, row *madeAttempt) (bool, error) {
	row.started, row.asked = s.DB.Now(), time.Now()
	may, err := s.begins.do(context.WithoutCancel(ctx), batch[*madeAttempt, bool]{
		db:    s.DB,
		calls: s.Gate,
		key:   func(row *madeAttempt) string { return string(row.task.UID[:]) },
		run:   beginMany,
	}, row)
	if err == nil && may {
		return true, nil
	}
	place.cede()
	if err == nil {
		return false, nil
	}
	return false, errors.Join(fmt.Errorf("beginning attempt %d of delivery %s: %w",
		row.number, row.task.UID, err), s.unbegin(ctx, row))
}

func beginMany(ctx context.Context, on *sqlx.DB, rows []*madeAttempt) ([]bool, error) {
	var columns [7]arrayLiteral
	for _, row := range inOrder(rows) {
		columns[0].addUID(row.task.UID)
		columns[1].addTime(row.task.CreatedAt)
		columns[2].addInt(int64(row.number))
		columns[3].addInt(row.run.JobID)
		columns[4].addInt(int64(row.run.Number))
		columns[5].addTime(row.run.ClaimedAt)
		columns[6].addTime(row.started)
	}
	args := make([]any, len(columns))
	for i := range columns {
		args[i] = columns[i].String()
	}
	var uids []uuid.UUID
	if err := on.SelectContext(ctx, &uids, noteBegun, args...); err != nil {
		return nil, err
	}
	noted := make(map[uuid.UUID]bool, len(uids))
	for _, uid := range uids {
		noted[uid] = true
	}
	may := make([]bool, len(rows))
	for i, row := range rows {
		may[i] = noted[row.task.UID]
	}
	return may, nil
}

// unbegin takes the note of an attempt back, if there is one, whose request has not
// left and will not.
func (s *Service) unbegin(ctx context.Context, row *madeAttempt) error {
	return postgres.Persist(ctx, "an attempt that was not begun", func(ctx context.Context) error {
		_, err := s.DB.ExecContext(ctx, `
			DELETE FROM begun_attempts
			 WHERE delivery_uid = $1
			   AND number = $2
			   AND job_id = $3
			   AND claimed_at = $4`, row.task.UID, row.number, row.run.JobID, row.run.ClaimedAt)
		if err != nil {
			return fmt.Errorf("taking back the begin of attempt %d of delivery %s: %w",
				row.number, row.task.UID, err)
		}
		return nil
	})
}

// ForgetBegun removes the notes of attempts that nothing will ask about any more:
// whose number was recorded by a process of an earlier release, or whose delivery
// ended or was removed meanwhile. It returns how many.
func (s *Service) ForgetBegun(ctx context.Context) (int64, error) {
	result, err := s.DB.ExecContext(ctx, `
		DELETE FROM begun_attempts b
		 WHERE NOT EXISTS (
		           SELECT 1
		             FROM deliveries d
		            WHERE d.delivery_uid = b.delivery_uid
		              AND d.created_at = b.created_at
		              AND d.attempt_count < b.number
		              AND d.state IN ('pending', 'retrying'))`)
	if err != nil {
		return 0, fmt.Errorf("removing notes of attempts that are over: %w", err)
	}
	return result.RowsAffected()
}
