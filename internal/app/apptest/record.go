package apptest

import (
	"testing"
	"time"

	"github.com/google/uuid"

	"drawbridge/internal/email"
	"drawbridge/internal/lending"
	"drawbridge/internal/postgres"
	"drawbridge/internal/webhook/delivery"
)

// Recorded is a recorded event.
type Recorded struct {
	Kind       lending.EventKind `db:"kind"`
	Status     string            `db:"status"`
	Body       string            `db:"body"`
	OccurredAt time.Time         `db:"occurred_at"`
}

// EventsOf returns every event of an application, in order.
func (h *Harness) EventsOf(t testing.TB, uid uuid.UUID) []Recorded {
	t.Helper()
	var all []Recorded
	must(t, h.DB.SelectContext(t.Context(), &all, `
		SELECT kind, status, convert_from(body, 'UTF8') AS body, occurred_at
		  FROM events
		 WHERE application_uid = $1
		 ORDER BY occurred_at`, uid))
	return all
}

// Statuses returns the events of an application as "kind: status", in order.
func (h *Harness) Statuses(t testing.TB, uid uuid.UUID) []string {
	t.Helper()
	var lines []string
	for _, event := range h.EventsOf(t, uid) {
		lines = append(lines, string(event.Kind)+": "+event.Status)
	}
	return lines
}

// DeliveriesOf returns the deliveries of an application, newest first.
func (h *Harness) DeliveriesOf(t testing.TB, uid uuid.UUID) []delivery.Delivery {
	t.Helper()
	found, _, err := h.Webhooks.Deliveries.List(t.Context(),
		delivery.Filter{ApplicationUID: uid}, postgres.Paging{Limit: postgres.MaxPage})
	must(t, err)
	return found
}

// MailsOf returns the mails of an application as "kind: state", oldest first.
func (h *Harness) MailsOf(t testing.TB, uid uuid.UUID) []string {
	t.Helper()
	filter := email.Filter{ApplicationUID: uid}
	mails, _, err := email.List(t.Context(), h.DB, filter, postgres.Paging{Limit: postgres.MaxPage})
	must(t, err)
	lines := make([]string, len(mails))
	for i, mail := range mails {
		lines[len(mails)-1-i] = string(mail.Kind) + ": " + string(mail.State)
	}
	return lines
}

// Queued counts the jobs of a queue.
func (h *Harness) Queued(t testing.TB, queue string) int {
	t.Helper()
	return h.Count(t, `SELECT count(*) FROM river_job WHERE queue = $1`, queue)
}
