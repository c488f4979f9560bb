package processes

import (
	"context"
	"fmt"
	"time"

	"github.com/lib/pq"

	"drawbridge/internal/email"
	"drawbridge/internal/lending"
)

// MaxActivity is the highest number that an Activity counts to.
const MaxActivity = 10_000

// Activity counts what was created in a period, by state.
type Activity struct {
	Applications, Draws []StateCount
	// MailsFailed and MailsQueued count e-mails made in that period; the failed are those that were
	// not sent successfully afterwards.
	MailsFailed, MailsQueued int
	// JobsWaiting is how many jobs of all queues could run now.
	JobsWaiting int
}

// StateCount is the number of rows in a state.
type StateCount struct {
	State string `db:"state"`
	Count int    `db:"count"`
}

// activitySpan is a period for which the activity is kept. A zero until is the present.
type activitySpan struct {
	length time.Duration
	until  time.Time
}

// Activity counts the applications, draws and mails that were made from the minute of since, where
// their lists begin (but for waiting mails), until before until. Each count goes up to MaxActivity.
// Where counting is expensive, the counts may be some seconds old.
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

// spanOf is the key under which the activity is kept. A period up to the present has the same key a
// minute later; otherwise every caller would read it again whenever a minute ends.
func spanOf(now, since, until time.Time) activitySpan {
	span := activitySpan{length: until.Sub(since), until: until.Truncate(time.Minute)}
	if now.Sub(until) < time.Minute {
		span.until = time.Time{}
	}
	return span
}
