package email

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jmoiron/sqlx"

	"drawbridge/internal/postgres"
)

// Wait is what a queued mail waits for in addition to its time. It has no job meanwhile.
type Wait string

// What a mail may wait for; usually nothing.
const (
	WaitNothing Wait = ""
	// WaitServer: the mail server refuses us, or this mail alone by an answer of that kind.
	WaitServer Wait = "server"
	// WaitWelcome: the application's welcome mail is not concluded.
	WaitWelcome Wait = "welcome"
)

const (
	// firstPause is the first pause before a server that refused us is tried again. Each refused probe
	// doubles the pause, up to longestPause, but only up to freshPause where it refuses recipients and
	// a mail waits that it has not refused yet.
	firstPause   = 5 * time.Second
	freshPause   = 30 * time.Second
	longestPause = 15 * time.Minute
	// releaseBatch bounds how many waiting mails one transaction queues again.
	releaseBatch = 500
	// orphanLock is the advisory lock of RequeueOrphans. Its value has no meaning.
	orphanLock = 7_305_140_443
)

// pauseAfter returns the pause after so many refusals since the first, up to longest.
func pauseAfter(refusals int, longest time.Duration) time.Duration {
	return min(firstPause<<min(refusals, 16), longest)
}

// Stop is a period in which the mail server refuses us.
type Stop struct {
	Since time.Time `db:"since"`
	// Answer is the server's last answer, or what is wrong with the server.
	Answer string `db:"answer"`
	// Waiting counts the mails that wait for the end of the stop.
	Waiting int `db:"waiting"`
}

// FindStop returns the current stop, nil if there is none. db is a pool or a transaction.
func FindStop(ctx context.Context, db sqlx.QueryerContext) (*Stop, error) {
	var stop Stop
	err := sqlx.GetContext(ctx, db, &stop, `
		SELECT since, answer,
		       (SELECT count(*) FROM emails
		         WHERE state = 'queued' AND waits_for = 'server') AS waiting
		  FROM mail_stop`)
	if postgres.IsNoRows(err) {
		return nil, nil //nolint:nilnil // no stop is no error
	}
	if err != nil {
		return nil, fmt.Errorf("looking whether the mail server refuses us: %w", err)
	}
	return &stop, nil
}

// isQueued reports whether e-mail e, which is found by a key, waits to be sent. The CASE keeps the
// planner from using the index of queued mails, which it believes to be small: that still has every
// mail queued since the oldest open transaction began.
const isQueued = `CASE WHEN e.state = 'queued' THEN true ELSE false END`

// welcomeQueued finds the welcome mail of an application while it is not concluded.
const welcomeQueued = `
	SELECT FROM emails e
	 WHERE e.kind = 'welcome'
	   AND e.resend_of IS NULL
	   AND e.state <> 'suppressed'
	   AND ` + isQueued + `
	   AND e.application_uid = `

// hold makes a mail wait that may not be sent yet, and reports whether it did. A mail that waits
// for its welcome mail does not wait for the server: no probe is spent on it.
func (m *MailSender) hold(
	ctx context.Context, tx *postgres.Tx, row Detail, job SendArgs,
) (bool, error) {
	var wait Wait
	err := tx.GetContext(ctx, &wait, `
		SELECT CASE WHEN $1 AND EXISTS (`+welcomeQueued+`$2) THEN 'welcome'
		            WHEN NOT $3 AND EXISTS (SELECT FROM mail_stop) THEN 'server'
		            ELSE '' END`,
		row.Kind != KindWelcome, row.ApplicationUID, job.Probe)
	if err != nil {
		return false, fmt.Errorf("looking what e-mail %s waits for: %w", row.EmailUID, err)
	}
	if wait == WaitNothing {
		return false, nil
	}
	_, err = tx.ExecContext(ctx,
		`UPDATE emails SET waits_for = $2 WHERE email_uid = $1`, row.EmailUID, wait)
	if err != nil {
		return false, fmt.Errorf("letting e-mail %s wait: %w", row.EmailUID, err)
	}
	return true, nil
}

// finish settles a mail, and releases the mails that waited for it.
func (m *MailSender) finish(
	ctx context.Context, tx *postgres.Tx, row Detail, decided verdict,
) error {
	err := settle(ctx, tx, row.EmailUID, decided)
	if err != nil || row.Kind != KindWelcome || !row.ApplicationUID.Valid {
		return err
	}
	// A CASE instead of the plain state, whose index would make the query skip all mails queued since
	// the oldest open transaction began.
	_, err = m.release(ctx, tx, `
		           w.application_uid = $4
		       AND CASE WHEN w.state = 'queued' THEN true ELSE false END`, row.ApplicationUID)
	return err
}

// Resume queues the mails that no longer have to wait, and returns how many. While the server
// refuses us, that is a single mail, after increasing pauses. Every process calls it every few
// seconds.
func (m *MailSender) Resume(ctx context.Context) (count int, err error) {
	err = m.DB.InTx(ctx, func(tx *postgres.Tx) error {
		if m.SMTP == nil { // there is nothing left to wait for
			if _, err := tx.ExecContext(ctx, `DELETE FROM mail_stop`); err != nil {
				return fmt.Errorf("forgetting the mail server: %w", err)
			}
		}
		if err := m.probe(ctx, tx); err != nil {
			return err
		}
		count, err = m.release(ctx, tx, `w.state = 'queued'`)
		return err
	})
	return count, err
}

// waiting is a waiting mail.
type waiting struct {
	EmailUID      uuid.UUID `db:"email_uid"`
	AttemptCount  int       `db:"attempt_count"`
	NextAttemptAt time.Time `db:"next_attempt_at"`
}

// probe lets one mail try the server once the pause is over. The server may refuse only some
// recipients, so probe chooses a mail with the fewest refusals; among those one for a domain
// without refused mails, and the newest.
func (m *MailSender) probe(ctx context.Context, tx *postgres.Tx) error {
	probes, due, err := m.probeDue(ctx, tx)
	if err != nil || !due {
		return err
	}
	var one waiting
	err = tx.GetContext(ctx, &one, `
		UPDATE emails
		   SET waits_for = '', next_attempt_at = $1
		 WHERE email_uid = (
		       SELECT email_uid
		         FROM emails
		        WHERE state = 'queued'
		          AND waits_for = 'server'
		        ORDER BY refusals,
		                 `+domain+` IN (SELECT `+domain+`
		                                  FROM emails
		                                 WHERE state = 'queued'
		                                   AND refusals > 0),
		                 created_at DESC, email_uid DESC
		        LIMIT 1
		          FOR UPDATE SKIP LOCKED)
		RETURNING email_uid, attempt_count, next_attempt_at`, tx.Now)
	if postgres.IsNoRows(err) {
		return nil // nothing waits; the next mail will
	}
	if err != nil {
		return fmt.Errorf("choosing an e-mail to try the mail server: %w", err)
	}
	_, err = tx.ExecContext(ctx, `UPDATE mail_stop SET probes = $1, next_probe_at = $2`,
		probes+1, tx.Now.Add(pauseAfter(probes+1, longestPause)))
	if err != nil {
		return fmt.Errorf("timing the next try of the mail server: %w", err)
	}
	return m.requeue(ctx, tx, one, true)
}

// domain is the domain of an e-mail's recipient.
const domain = `lower(substring(to_address FROM '[^@]*$'))`

// probeDue reports whether to probe the server that refuses us, and how often it was probed.
func (m *MailSender) probeDue(
	ctx context.Context, tx *postgres.Tx,
) (probes int, due bool, err error) {
	var stop struct {
		Probes      int       `db:"probes"`
		NextProbeAt time.Time `db:"next_probe_at"`
	}
	err = tx.GetContext(ctx, &stop,
		`SELECT probes, next_probe_at FROM mail_stop FOR UPDATE SKIP LOCKED`)
	if postgres.IsNoRows(err) {
		return 0, false, nil
	}
	if err != nil {
		return 0, false, fmt.Errorf("looking whether to try the mail server: %w", err)
	}
	last := stop.NextProbeAt.Add(-pauseAfter(stop.Probes, longestPause))
	switch {
	case !stop.NextProbeAt.After(tx.Now):
		return stop.Probes, true, nil
	case last.Add(freshPause).After(tx.Now):
		return stop.Probes, false, nil
	}
	err = tx.GetContext(ctx, &due, `
		SELECT EXISTS (SELECT
		                 FROM emails
		                WHERE state = 'queued'
		                  AND waits_for = 'server'
		                  AND refusals = 0)
		       AND 'recipient' IS NOT DISTINCT FROM (
		               SELECT a.stage
		                 FROM emails e
		                 JOIN email_attempts a ON a.email_uid = e.email_uid
		                                      AND a.number = e.attempt_count
		                WHERE e.state = 'queued'
		                  AND e.refusals > 0
		                  AND a.outcome = 'refused'
		                ORDER BY a.finished_at DESC
		                LIMIT 1)`)
	if err != nil {
		return 0, false, fmt.Errorf("looking for an e-mail to try the mail server: %w", err)
	}
	return stop.Probes, due, nil
}

// release queues those waiting mails w that have nothing left to wait for, the oldest first; which
// is a condition that selects among them, with args from $4 on. A mail that the server refused must
// also wait for its time, unless no server is configured any more.
func (m *MailSender) release(
	ctx context.Context, tx *postgres.Tx, which string, args ...any,
) (int, error) {
	var going []waiting
	err := tx.SelectContext(ctx, &going, `
		WITH going AS (
			SELECT w.email_uid
			  FROM emails w
			 WHERE `+which+`
			   AND w.waits_for <> ''
			   AND CASE w.waits_for
			           WHEN 'server' THEN ($3 OR w.next_attempt_at <= $1)
			                              AND NOT EXISTS (SELECT FROM mail_stop)
			           ELSE NOT EXISTS (`+welcomeQueued+`w.application_uid) END
			 ORDER BY w.created_at, w.email_uid
			 LIMIT $2
			   FOR UPDATE SKIP LOCKED),
		released AS (
			UPDATE emails e
			   SET waits_for       = '',
			       next_attempt_at = CASE WHEN $3 THEN $1 ELSE greatest(e.next_attempt_at, $1) END
			  FROM going
			 WHERE e.email_uid = going.email_uid
			RETURNING e.email_uid, e.attempt_count, e.next_attempt_at, e.created_at)
		SELECT email_uid, attempt_count, next_attempt_at
		  FROM released
		 ORDER BY created_at, email_uid`, append([]any{tx.Now, releaseBatch, m.SMTP == nil}, args...)...)
	if err != nil {
		return 0, fmt.Errorf("choosing the e-mails that waited: %w", err)
	}
	for _, one := range going {
		if err := m.requeue(ctx, tx, one, false); err != nil {
			return 0, err
		}
	}
	return len(going), nil
}

// RequeueOrphans queues mails again that wait for nothing, have been due for longer than patience
// and have no job, and returns how many: the queue gave up their job, or somebody deleted it. One
// process runs it at a time: two could both find a mail whose new job neither sees yet.
func (m *MailSender) RequeueOrphans(
	ctx context.Context, patience time.Duration,
) (count int, err error) {
	err = m.DB.InTx(ctx, func(tx *postgres.Tx) error {
		var alone bool
		err := tx.GetContext(ctx, &alone, `SELECT pg_try_advisory_xact_lock($1)`, orphanLock)
		if err != nil || !alone {
			return err
		}
		var orphans []waiting
		// In batches, as for deliveries: see delivery.Service.MarkOrphans.
		if err := tx.SelectContext(ctx, &orphans, `
			WITH overdue AS MATERIALIZED (
				SELECT email_uid::text AS uid, attempt_count, next_attempt_at, created_at
				  FROM emails
				 WHERE state = 'queued'
				   AND waits_for = ''
				   AND next_attempt_at < $1)
			SELECT uid::uuid            AS email_uid,
			       max(attempt_count)   AS attempt_count,
			       max(next_attempt_at) AS next_attempt_at
			  FROM (SELECT uid, attempt_count, next_attempt_at, created_at
			          FROM overdue
			         UNION ALL
			        SELECT args ->> 'email_uid', 0, $1, NULL
			          FROM river_job
			         WHERE EXISTS (SELECT FROM overdue)
			           AND kind = $3
			           AND queue = $4
			           AND state IN ('available', 'pending', 'retryable', 'running', 'scheduled'))
			       AS known
			 GROUP BY uid
			HAVING count(*) = count(created_at)
			 ORDER BY max(created_at), uid
			 LIMIT $2`, tx.Now.Add(-patience), releaseBatch, SendArgs{}.Kind(), Queue); err != nil {
			return err
		}
		for _, one := range orphans {
			if err := m.requeue(ctx, tx, one, false); err != nil {
				return err
			}
		}
		count = len(orphans)
		return nil
	})
	if err != nil {
		return 0, fmt.Errorf("looking for e-mails without a job: %w", err)
	}
	return count, nil
}

// requeue adds the job that a waiting mail lacks.
func (m *MailSender) requeue(ctx context.Context, tx *postgres.Tx, one waiting, probe bool) error {
	job := SendArgs{EmailUID: one.EmailUID, Attempt: one.AttemptCount + 1, Probe: probe}
	return enqueue(ctx, tx, m.Jobs, job, one.NextAttemptAt)
}
