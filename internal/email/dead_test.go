package email_test

import (
	"testing"

	"drawbridge/internal/email"
	"drawbridge/internal/email/emailtest"
	"drawbridge/internal/postgres/pgtest"
)

// TestSendingDoesNotReadTheDead: while a transaction is open, the index of the mails that wait
// holds all that waited since it began, and the planner knows of few. A mail reads its own rows.
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
	b.db.SetMaxOpenConns(2) // one of which is held
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
