package processes

import (
	"context"
	"fmt"
	"time"

	"github.com/lib/pq"

	"drawbridge/internal/email"
	"drawbridge/internal/lending"
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
		count := func(table, at string, states any) (counts []StateCount, err error) {
			err = s.DB.SelectContext(ctx, &counts, `
				SELECT k.state, (SELECT count(*)
				                   FROM (SELECT
				                           FROM `+table+`
				                          WHERE status = k.state
				                            AND `+at+` >= date_trunc('minute', $1::timestamptz)
				                            AND `+at+` < $2
				                          LIMIT $3) AS made) AS count
				  FROM unnest($4::text[]) WITH ORDINALITY AS k (state, place)
				 ORDER BY k.place`, since, until, MaxActivity, pq.Array(states))
			if err != nil {
				return nil, fmt.Errorf("counting %s: %w", table, err)
			}
			return counts, nil
		}
		var activity Activity
		var err error
		activity.Applications, err = count(`applications`, `created_at`,
			lending.AllApplicationStatuses())
		if err != nil {
			return Activity{}, err
		}
		activity.Draws, err = count(`disbursements`, `requested_at`, lending.AllFundingStatuses())
		if err != nil {
			return Activity{}, err
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
