package e2etest

import (
	"slices"
	"testing"
	"time"

	"drawbridge/internal/postgres"
	"drawbridge/internal/waittest"
)

// MailPatience is how long a test waits for mails on a busy machine.
const MailPatience = 3 * time.Minute

// Mail is a mail as the log has it.
type Mail struct {
	UID       string `db:"email_uid"`
	State     string `db:"state"`
	MessageID string `db:"message_id"`
	Unknown   bool   `db:"outcome_unknown"`
	Attempts  int    `db:"attempt_count"`
	// Waits tells that it waits for more than its time: for the mail server, or for a
	// welcome mail that is not concluded itself. Once that is, it goes within seconds.
	Waits bool `db:"waits"`
	// Running counts attempts without an end, Handed those that were handed over.
	Running int `db:"running"`
	Handed  int `db:"handed"`
	// Errors are what its attempts met.
	Errors string `db:"errors"`
}

// Mails returns every mail of the log.
func Mails(t *testing.T, db *postgres.DB) []Mail {
	t.Helper()
	var all []Mail
	err := db.SelectContext(t.Context(), &all, `
		SELECT e.email_uid, e.state, coalesce(e.message_id, '') AS message_id, e.outcome_unknown,
		       e.attempt_count, count(a.number) FILTER (WHERE a.outcome IS NULL) AS running,
		       count(a.handed_over_at) AS handed,
		       coalesce(string_agg(nullif(a.error, ''), '; ' ORDER BY a.number), '') AS errors,
		       e.waits_for = 'server'
		       OR e.waits_for = 'welcome' AND EXISTS (
		           SELECT FROM emails w
		            WHERE w.kind = 'welcome' AND w.state = 'queued'
		              AND w.application_uid = e.application_uid) AS waits
		  FROM emails e LEFT JOIN email_attempts a USING (email_uid)
		 GROUP BY e.email_uid
		 ORDER BY e.created_at`)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// WaitForMails waits until no mail is under way or waits for a first attempt, unless for
// its application's welcome mail, and returns the log.
func WaitForMails(t *testing.T, db *postgres.DB) []Mail {
	t.Helper()
	var log []Mail
	waittest.Within(t, MailPatience, "no mail is under way", func() bool {
		log = Mails(t, db)
		return !slices.ContainsFunc(log, func(p Mail) bool {
			return p.Running > 0 || p.State == "queued" && p.Attempts == 0 && !p.Waits
		})
	})
	return log
}
