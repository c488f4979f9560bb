package processes

import (
	"context"
	"fmt"
	"time"

	"drawbridge/internal/email"
)

// MaxActivity is what the counts of an Activity go up to.
const MaxActivity = 10_000

// Activity counts what was begun in a time, by state.
type Activity struct {
	Applications, Draws []StateCount
	// MailsFailed and MailsQueued count e-mails made in that time; the failed are those that
	// were not made good.
	MailsFailed, MailsQueued int
	// JobsWaiting is how many jobs could run now, of all queues.
	JobsWaiting int
}

// StateCount is how many are in a state.
type StateCount struct {
	State string `db:"state"`
	Count int    `db:"count"`
}

// activitySpan is a time of which the activity is kept. The zero until is the present.
type activitySpan struct {
	length time.Duration
	until  time.Time
}

// Activity counts applications and draws that were made, and mails, from the minute of since on,
// as their lists begin (but for mails that wait), until before until. Each count goes up to
// MaxActivity. Where they are dear to read, they may be some seconds old.
func (s *Service) Activity(ctx context.Context, since, until time.Time) (Activity, error) {
	return s.activity.Get(spanOf(s.DB.Now(), since, until), func() (Activity, error) {
		var activity Activity
		err := s.DB.SelectContext(ctx, &activity.Applications, `
			SELECT k.state, (SELECT count(*)
			                   FROM (SELECT
			                           FROM applications
			                          WHERE status = k.state
			                            AND created_at >= date_trunc('minute', $1::timestamptz)
			                            AND created_at < $2
			                          LIMIT $3) AS made) AS count
			  FROM unnest(ARRAY['Pending Review', 'Hard Pull Authorization', 'Hard Pull',
			                    'Pend Clearance', 'Approved', 'Declined', 'Closed'])
			       WITH ORDINALITY AS k (state, place)
			 ORDER BY k.place`, since, until, MaxActivity)
		if err != nil {
			return Activity{}, fmt.Errorf("counting applications: %w", err)
		}
		err = s.DB.SelectContext(ctx, &activity.Draws, `
			SELECT k.state,
			       (SELECT count(*) FROM (SELECT
			                                FROM disbursements
			                               WHERE status = k.state
			                                 AND requested_at >= date_trunc('minute', $1::timestamptz)
			                                 AND requested_at < $2
			                               LIMIT $3) AS made) AS count
			  FROM unnest(ARRAY['FUNDING_REQUESTED', 'FUNDING_PROCESSING', 'FUNDING_SETTLED',
			                    'CANCELLED', 'RETURNED']) WITH ORDINALITY AS k (state, place)
			 ORDER BY k.place`, since, until, MaxActivity)
		if err != nil {
			return Activity{}, fmt.Errorf("counting draws: %w", err)
		}
		err = s.DB.QueryRowContext(ctx, `
			SELECT (SELECT count(*)
			          FROM (SELECT FROM emails
			                 WHERE state = 'queued' AND created_at >= $1 AND created_at < $2
			                 LIMIT $3) AS queued),
			       (SELECT count(*)
			          FROM (SELECT FROM river_job WHERE state = 'available' LIMIT $3) AS waiting)`,
			since, until, MaxActivity).
			Scan(&activity.MailsQueued, &activity.JobsWaiting)
		if err != nil {
			return Activity{}, fmt.Errorf("counting mails and jobs: %w", err)
		}
		activity.MailsFailed, err = email.Count(ctx, s.DB, email.Filter{
			Open: true, Since: since.Truncate(time.Minute), Until: until,
		}, MaxActivity)
		return activity, err
	})
}

// spanOf is the time by which the activity is kept. One that goes on to the present is the same
// a minute later, or everybody would read it again whenever a minute ends.
func spanOf(now, since, until time.Time) activitySpan {
	span := activitySpan{length: until.Sub(since), until: until.Truncate(time.Minute)}
	if now.Sub(until) < time.Minute {
		span.until = time.Time{}
	}
	return span
}
