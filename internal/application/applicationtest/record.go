package applicationtest

import (
	"crypto/sha256"
	"encoding/hex"
	"testing"
	"time"

	"github.com/google/uuid"

	"drawbridge/internal/email"
	"drawbridge/internal/lending"
	"drawbridge/internal/postgres"
	"drawbridge/internal/webhook/delivery"
)

// Told is a recorded event.
type Told struct {
	Kind       lending.EventKind `db:"kind"`
	Status     string            `db:"status"`
	Body       string            `db:"body"`
	OccurredAt time.Time         `db:"occurred_at"`
}

// EventsOf returns every event of an application, in their order.
func (w *World) EventsOf(t testing.TB, uid uuid.UUID) []Told {
	t.Helper()
	var all []Told
	err := w.DB.SelectContext(t.Context(), &all, `
		SELECT kind, status, convert_from(body, 'UTF8') AS body, occurred_at
		  FROM events
		 WHERE application_uid = $1
		 ORDER BY occurred_at`, uid)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// Statuses returns the events of an application as "kind: status", in order.
func (w *World) Statuses(t testing.TB, uid uuid.UUID) []string {
	t.Helper()
	var lines []string
	for _, told := range w.EventsOf(t, uid) {
		lines = append(lines, string(told.Kind)+": "+told.Status)
	}
	return lines
}

// DeliveriesOf returns the deliveries of an application, newest first.
func (w *World) DeliveriesOf(t testing.TB, uid uuid.UUID) []delivery.Delivery {
	t.Helper()
	page, err := w.Webhooks.Deliveries(t.Context(), delivery.Filter{
		ApplicationUID: uid, Limit: postgres.MaxPage,
	})
	if err != nil {
		t.Fatal(err)
	}
	return page.Deliveries
}

// MailsOf returns the mails of an application as "kind: state", oldest first.
func (w *World) MailsOf(t testing.TB, uid uuid.UUID) []string {
	t.Helper()
	filter := email.Filter{ApplicationUID: uid}
	mails, _, err := email.List(t.Context(), w.DB, filter, postgres.Cursor{}, postgres.MaxPage)
	if err != nil {
		t.Fatal(err)
	}
	lines := make([]string, len(mails))
	for i, mail := range mails {
		lines[len(mails)-1-i] = string(mail.Kind) + ": " + string(mail.State)
	}
	return lines
}

// Jobs counts the jobs of a queue.
func (w *World) Jobs(t testing.TB, queue string) int {
	t.Helper()
	return w.Count(t, `SELECT count(*) FROM river_job WHERE queue = $1`, queue)
}

// Count runs a query for one number.
func (w *World) Count(t testing.TB, query string, args ...any) int {
	t.Helper()
	var count int
	if err := w.DB.GetContext(t.Context(), &count, query, args...); err != nil {
		t.Fatal(err)
	}
	return count
}

func hash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}
