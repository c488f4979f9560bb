package faults

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"drawbridge/internal/postgres"
	"drawbridge/internal/waittest"
)

// faultTally has the totals of a fault test.
type faultTally struct {
	events, accepted, delivered, failed         int
	requests, unknown, confirmedAgain, neverGot int
	// late counts successes followed by another attempt: they were unknown first, and
	// written when a frozen process woke or a slow database answered.
	late int
}

// ledgerDelivery is a delivery with its attempts as the service recorded them.
type ledgerDelivery struct {
	UID      string `db:"delivery_uid"`
	State    string `db:"state"`
	Attempts int    `db:"attempt_count"`
	Body     []byte `db:"body"`
	made     []ledgerAttempt
}

type ledgerAttempt struct {
	UID    string  `db:"delivery_uid"`
	Number int     `db:"number"`
	Status *int    `db:"http_status"`
	Class  *string `db:"error_class"`
}

func (a ledgerAttempt) unknown() bool { return a.Class != nil && *a.Class == "unknown" }

// story describes the delivery's attempts in one line.
func (d *ledgerDelivery) story() string {
	var text strings.Builder
	for _, attempt := range d.made {
		fmt.Fprintf(&text, "%d:", attempt.Number)
		if attempt.Status != nil {
			fmt.Fprintf(&text, " %d", *attempt.Status)
		}
		if attempt.Class != nil {
			fmt.Fprintf(&text, " %s", *attempt.Class)
		}
		text.WriteString("; ")
	}
	return text.String()
}

// waitUntilSettled waits until every delivery has ended.
func waitUntilSettled(t *testing.T, db *postgres.DB, limit time.Duration) {
	t.Helper()
	waittest.Within(t, limit, "every delivery has ended", func() bool {
		var open int
		err := db.GetContext(t.Context(), &open, `
			SELECT (SELECT count(*) FROM outbox)
			     + (SELECT count(*) FROM deliveries WHERE state IN ('pending', 'retrying'))`)
		return err == nil && open == 0
	})
}

// audit compares the service's records with the receiver's, delivery by delivery. titles
// are the titles of the tasks whose creation was confirmed.
func audit(t *testing.T, db *postgres.DB, r *recordingReceiver, titles []string) faultTally {
	t.Helper()
	found := faultTally{accepted: len(titles)}
	committed := map[string]bool{}
	var titled []string
	err := db.SelectContext(t.Context(), &titled, `
		SELECT convert_from(body, 'UTF8')::jsonb ->> 'task_title'
		  FROM events
		 WHERE kind = 'task.created'`)
	if err != nil {
		t.Fatal(err)
	}
	for _, title := range titled {
		committed[title] = true
	}
	for _, title := range titles {
		if !committed[title] {
			t.Errorf("task %q was confirmed and has no event", title)
		}
	}
	found.events = len(titled)
	ledger := readLedger(t, db)
	if len(ledger) != found.events {
		t.Errorf("%d events have %d deliveries", found.events, len(ledger))
	}
	for _, delivery := range ledger {
		found.check(t, delivery, r.of(delivery.UID))
	}
	if r.overlaps > 0 {
		t.Errorf("%d requests came while another of their delivery was under way", r.overlaps)
	}
	return found
}

func readLedger(t *testing.T, db *postgres.DB) map[string]*ledgerDelivery {
	t.Helper()
	var deliveries []*ledgerDelivery
	err := db.SelectContext(t.Context(), &deliveries, `
		SELECT d.delivery_uid, d.state, d.attempt_count, e.body
		  FROM deliveries d
		  JOIN events e ON e.event_uid = d.event_uid AND e.occurred_at = d.event_at
		 WHERE d.event = 'task.created'`)
	if err != nil {
		t.Fatal(err)
	}
	ledger := make(map[string]*ledgerDelivery, len(deliveries))
	for _, delivery := range deliveries {
		ledger[delivery.UID] = delivery
	}
	var attempts []ledgerAttempt
	err = db.SelectContext(t.Context(), &attempts, `
		SELECT delivery_uid, number, http_status, error_class FROM attempts ORDER BY number`)
	if err != nil {
		t.Fatal(err)
	}
	for _, attempt := range attempts {
		if of := ledger[attempt.UID]; of != nil {
			of.made = append(of.made, attempt)
		}
	}
	return ledger
}

// check compares one delivery with its requests.
func (f *faultTally) check(t *testing.T, d *ledgerDelivery, got []receipt) {
	t.Helper()
	f.requests += len(got)
	switch {
	case d.State == "delivered":
		f.delivered++
	case d.State == "failed" && d.Attempts == 3:
		f.failed++
	default:
		t.Errorf("delivery %s ended %s after %d attempts", d.UID, d.State, d.Attempts)
	}
	if len(d.made) != d.Attempts || d.Attempts > 3 {
		t.Errorf("delivery %s counts %d attempts and records %d", d.UID, d.Attempts, len(d.made))
	}
	if !sameBytes(got, d.Body) {
		t.Errorf("the requests of delivery %s differ from its event", d.UID)
	}
	byNumber := map[int]receipt{}
	confirmed := 0
	for _, one := range got {
		if _, twice := byNumber[one.number]; twice {
			t.Errorf("attempt %d of delivery %s was sent twice", one.number, d.UID)
		}
		byNumber[one.number] = one
		if one.status == http.StatusNoContent {
			confirmed++
		}
	}
	f.confirmedAgain += max(confirmed-1, 0)
	unknown, late := 0, 0
	for i, attempt := range d.made {
		switch {
		case attempt.unknown():
			unknown++
		case attempt.Class == nil && i < len(d.made)-1:
			late++
		}
		checkTruth(t, d, i, attempt, byNumber)
	}
	f.unknown += unknown
	f.late += late
	if len(got) == 0 {
		f.neverGot++
		if d.State == "delivered" || unknown < 3 {
			t.Errorf("delivery %s (%s) never came", d.UID, d.State)
		}
	}
	if unknown+late < confirmed-1 {
		t.Errorf("delivery %s was confirmed %d times, with %d attempts unknown: %s",
			d.UID, confirmed, unknown, d.story())
	}
}

// checkTruth compares a recorded attempt with the request of the same number.
func checkTruth(
	t *testing.T, d *ledgerDelivery, i int, attempt ledgerAttempt, got map[int]receipt,
) {
	t.Helper()
	if attempt.Number != i+1 {
		t.Errorf("delivery %s has no attempt %d", d.UID, i+1)
	}
	if attempt.Status == nil && attempt.Class == nil {
		t.Errorf("attempt %d of delivery %s has no outcome", attempt.Number, d.UID)
	}
	one, came := got[attempt.Number]
	if !came && !attempt.unknown() {
		t.Errorf("attempt %d of delivery %s is recorded and never came", attempt.Number, d.UID)
	}
	if attempt.Status != nil && *attempt.Status != one.status {
		t.Errorf("attempt %d of delivery %s is recorded as %d and was answered %d",
			attempt.Number, d.UID, *attempt.Status, one.status)
	}
}
