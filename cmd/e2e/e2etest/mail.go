package e2etest

import (
	"slices"
	"testing"
	"time"

	"drawbridge/internal/postgres"
	"drawbridge/internal/waittest"
)

// MailPatience is how long a test waits for e-mails on a busy machine.
const MailPatience = 3 * time.Minute

// Mail is an e-mail in the log.
type Mail struct {
	UID       string `db:"email_uid"`
	State     string `db:"state"`
	MessageID string `db:"message_id"`
	Unknown   bool   `db:"outcome_unknown"`
	Attempts  int    `db:"attempt_count"`
	// Waits says that it waits not only for its time, but for the mail server or for an
	// unfinished welcome e-mail. Once that has ended, it is sent within seconds.
	Waits bool `db:"waits"`
	// Running counts attempts that have not ended, Handed those handed to the server.
	Running int `db:"running"`
	Handed  int `db:"handed"`
	// Errors are the errors of its attempts.
	Errors string `db:"errors"`
}

// Mails returns every e-mail in the log.
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

// WaitForMails waits until no e-mail is being sent or waits for its first attempt, except those
// that wait for their application's welcome e-mail, and returns the log.
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
