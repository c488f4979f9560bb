package email_test

import (
	"testing"
	"time"

	"drawbridge/internal/email"
	"drawbridge/internal/email/emailtest"
	"drawbridge/internal/postgres/pgtest"
)

// TestSendingDoesNotReadTheDead: while a transaction is open, the index of waiting mails holds all
// that waited since it began, and the planner expects few. A mail reads only its own rows.
func TestSendingDoesNotReadTheDead(t *testing.T) {
	t.Parallel()
	const dead = 20_000
	b := newBench(t)
	sender := b.mailSender(t, emailtest.NewServer(t, emailtest.Options{}).URL())
	pgtest.Hold(t, b.db)
	b.exec(t, `
		INSERT INTO emails (email_uid, kind, to_name, to_address, params, state, created_at,
		                    next_attempt_at)
		SELECT gen_random_uuid(), 'task', 'Ana', 'ana@example.com', '{}', 'queued', now(), now()
		  FROM generate_series(1, $1)`, dead)
	b.exec(t, `UPDATE emails SET state = 'sent', next_attempt_at = NULL, finished_at = now()`)
	b.exec(t, `ANALYZE emails`)
	b.db.SetMaxOpenConns(2) // one is held by the transaction
	for range 8 {
		b.schedule(t, b.task("Sign"))
		read := pgtest.Blocks(t, b.db, b.db.DB, []string{"emails"}, func() {
			if report := b.deliver(t, sender, b.last(t)); report.Email.State != email.StateSent {
				t.Fatalf("the mail is %s", report.Email.State)
			}
		})
		if read > 200 {
			t.Errorf("a mail read %d blocks beside %d that had waited", read, dead)
		}
	}
}

// TestMailsWithoutAJobAreFoundInOneLook: thousands of mails wait, each with its job, and the
// planner's statistics are from when none did. Each list is read once.
func TestMailsWithoutAJobAreFoundInOneLook(t *testing.T) {
	t.Parallel()
	const waiting = 5_000
	o := newPostOffice(t, emailtest.NewServer(t, emailtest.Options{}))
	o.schedule(t, o.task("Sign"))
	o.exec(t, `DELETE FROM river_job`)
	o.exec(t, `VACUUM ANALYZE river_job, emails`)
	o.exec(t, `
		INSERT INTO emails (email_uid, kind, to_name, to_address, params, state, created_at,
		                    next_attempt_at)
		SELECT gen_random_uuid(), 'task', 'Ana', 'ana@example.com', '{}', 'queued', created_at,
		       created_at
		  FROM emails
		 CROSS JOIN generate_series(2, $1)`, waiting)
	o.exec(t, `
		INSERT INTO river_job (state, queue, kind, args, max_attempts, scheduled_at)
		SELECT 'available', $1, $2, jsonb_build_object('email_uid', email_uid), 25, now()
		  FROM emails
		OFFSET 1`, email.Queue, email.SendArgs{}.Kind())
	o.now = o.now.Add(time.Hour)
	o.db.SetMaxOpenConns(1)
	read := pgtest.Blocks(t, o.db, o.db.DB, []string{"river_job", "emails"}, func() {
		count, err := o.sender.RequeueOrphans(t.Context(), 3*time.Minute)
		if count != 1 || err != nil {
			t.Errorf("%d mails got a job, %v", count, err)
		}
	})
	if read > 4*waiting {
		t.Errorf("looking for jobs of %d mails read %d blocks", waiting, read)
	}
}
