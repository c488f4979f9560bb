package metrics_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"drawbridge/internal/app/apptest"
	"drawbridge/internal/lending"
	"drawbridge/internal/loan"
	"drawbridge/internal/postgres"
	"drawbridge/internal/postgres/pgtest"
	"drawbridge/internal/processes"
	"drawbridge/internal/waittest"
	"drawbridge/internal/webhook/webhooktest"
)

// gauge reads a metric of a fresh scrape.
func gauge(t *testing.T, db *postgres.DB, name string) float64 {
	t.Helper()
	other := apptest.On(t, db) // without kept results of the database
	answer := httptest.NewRecorder()
	other.Metrics.Handler().ServeHTTP(
		answer, httptest.NewRequest(http.MethodGet, "/metrics", http.NoBody))
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	_, after, found := strings.Cut(string(text), "\n"+name+" ")
	if !found {
		t.Fatalf("%s is missing in\n%s", name, text)
	}
	line, _, _ := strings.Cut(after, "\n")
	value, err := strconv.ParseFloat(line, 64)
	if err != nil {
		t.Fatal(err)
	}
	return value
}

// TestOverdueLeavesOutWhatWaitsOnPurpose makes a delivery that has been due for an hour wait for
// each possible reason.
func TestOverdueLeavesOutWhatWaitsOnPurpose(t *testing.T) {
	t.Parallel()
	h := apptest.New(t)
	pgtest.Exec(t, h.DB, `
		INSERT INTO deliveries (delivery_uid, event_uid, subscription_uid, event, status, state, event_at,
		                        next_attempt_at, created_at, queued)
		VALUES ($1, $1, $1, 'task.created', 'Pending', 'pending', now(), now() - interval '1 hour',
		        now(), false)`, uuid.New())
	for _, one := range []struct {
		name, change string
		overdue      bool
	}{
		{"nobody queued it", ``, true},
		{"queued and not begun", `UPDATE deliveries SET queued = true`, true},
		{
			"being sent", `INSERT INTO begun_attempts
				SELECT delivery_uid, created_at, 1, 1, now(), now() FROM deliveries`, false,
		},
		{
			"of an earlier attempt",
			`UPDATE deliveries SET attempt_count = 1, state = 'retrying'`, true,
		},
		{"held for its endpoint", `UPDATE deliveries SET queued = false, held = true`, false},
		{"paused", `UPDATE deliveries SET held = false, parked = true`, false},
	} {
		if one.change != "" {
			pgtest.Exec(t, h.DB, one.change)
		}
		age := gauge(t, h.DB, `drawbridge_deliveries_overdue_seconds{state="pending"}`) +
			gauge(t, h.DB, `drawbridge_deliveries_overdue_seconds{state="retrying"}`)
		if (age > 3500) != one.overdue || !one.overdue && age != 0 {
			t.Errorf("%s: overdue for %g s", one.name, age)
		}
	}
}

// TestScrapeTellsTheOldestDraw ages a draw in each of its states.
func TestScrapeTellsTheOldestDraw(t *testing.T) {
	t.Parallel()
	h := apptest.New(t)
	product := h.NewProduct(t, "SOLAR", "40,40,20")
	older := h.Draw(t, h.Loan(t, product).UID, loan.DrawInput{})
	h.Draw(t, h.Loan(t, product).UID, loan.DrawInput{})
	want := func(when, state string, count, hours float64) {
		t.Helper()
		pending := gauge(t, h.DB, `drawbridge_draws_pending{state="`+state+`"}`)
		age := gauge(t, h.DB, `drawbridge_draw_oldest_seconds{state="`+state+`"}`)
		if pending != count || age < hours*3600 || age > hours*3600+600 {
			t.Errorf("%s: %g draws are %s, the oldest for %g s", when, pending, state, age)
		}
	}
	want("at first", "FUNDING_REQUESTED", 2, 0)
	pgtest.Exec(t, h.DB, `
		UPDATE disbursements SET requested_at = now() - interval '3 hours'
		 WHERE merchant_disbursement_id = $1`, older.ID)
	want("with an old one", "FUNDING_REQUESTED", 2, 3)
	want("with an old one", "FUNDING_PROCESSING", 0, 0)
	h.Fund(t, older.ID, lending.FundingProcessing)
	want("once it is sent", "FUNDING_REQUESTED", 1, 0)
	want("once it is sent", "FUNDING_PROCESSING", 1, 0)
	pgtest.Exec(t, h.DB, `
		UPDATE disbursements SET processing_at = now() - interval '2 hours'
		 WHERE merchant_disbursement_id = $1`, older.ID)
	want("sent long ago", "FUNDING_PROCESSING", 1, 2)
	h.Fund(t, older.ID, lending.FundingSettled)
	want("settled", "FUNDING_PROCESSING", 0, 0)
}

// TestScrapeTellsTheCondition covers the metrics of the alerts that look ahead.
func TestScrapeTellsTheCondition(t *testing.T) {
	t.Parallel()
	h := apptest.New(t)
	want := func(name string, least, most float64) {
		t.Helper()
		if got := gauge(t, h.DB, "drawbridge_"+name); got < least || got > most {
			t.Errorf("%s is %g, want %g to %g", name, got, least, most)
		}
	}
	want("workers", 0, 0)
	want("partitions_ahead_months", 1, 1)
	if _, err := h.DB.MakePartitions(t.Context()); err != nil {
		t.Fatal(err)
	}
	want("partitions_ahead_months", 3, 3)
	want("backup_age_seconds", 0, 0)
	want("wal_archive_failing", 0, 0)
	want("xid_age", 1, 2e8)
	pgtest.Begin(t, h.DB, `SELECT pg_sleep(0.05)`)
	want("oldest_transaction_seconds", 0.05, 120)
	worker := (&processes.Service{DB: h.DB}).New([]string{"worker"}, "dev")
	if err := h.Processes.Beat(t.Context(), worker); err != nil {
		t.Fatal(err)
	}
	want("workers", 1, 1)
	err := h.DB.InTx(t.Context(), func(tx *postgres.Tx) error {
		_, _, err := h.Restored.RecordBackup(t.Context(), tx)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	pgtest.Exec(t, h.DB, `UPDATE installation SET backed_up_at = now() - interval '30 hours'`)
	want("backup_age_seconds", 108_000, 108_200)
	month := time.Now().UTC().AddDate(0, 0, 1-time.Now().UTC().Day()).AddDate(0, 1, 0)
	pgtest.Exec(t, h.DB, fmt.Sprintf(`DROP TABLE attempts_y%04dm%02d`, month.Year(), month.Month()))
	want("partitions_ahead_months", 0, 0)
}

// TestScrapeBesideALockedTable: the other metrics are reported, and the database is up.
func TestScrapeBesideALockedTable(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	pgtest.Begin(t, db, `LOCK TABLE emails IN ACCESS EXCLUSIVE MODE`)
	other := apptest.On(t, db)
	var text string
	// On a busy machine the scrape may time out before its last statement.
	waittest.Until(t, "a scrape has come to its end", func() bool {
		answer := httptest.NewRecorder()
		other.Metrics.Handler().ServeHTTP(
			answer, httptest.NewRequest(http.MethodGet, "/metrics", http.NoBody))
		text = answer.Body.String()
		return strings.Contains(text, "\ndrawbridge_subscriptions{")
	})
	for name, wanted := range map[string]bool{
		"database_up 1": true, "outbox_events 0": true, "restore_held 0": true, "workers 0": true,
		`subscriptions{state="active"} 0`: true, "mails_queued": false,
	} {
		if strings.Contains(text, "\ndrawbridge_"+name) != wanted {
			t.Errorf("%s is told: %t, want %t", name, !wanted, wanted)
		}
	}
}

// TestScrapeTellsOfStoppedSubscriptions covers the metric of the alert SubscriptionsStopped.
func TestScrapeTellsOfStoppedSubscriptions(t *testing.T) {
	t.Parallel()
	h := webhooktest.New(t)
	endpoint := webhooktest.NewReceiver(t, webhooktest.Answering(200))
	made, _ := h.Subscribe(t, endpoint.URL, nil)
	want := func(when string, active, stopped float64) {
		t.Helper()
		for state, count := range map[string]float64{"active": active, "stopped": stopped} {
			if got := gauge(t, h.DB, `drawbridge_subscriptions{state="`+state+`"}`); got != count {
				t.Errorf("%s: %g are %s, want %g", when, got, state, count)
			}
		}
	}
	want("before a delivery", 1, 0)
	keys := h.Subscriptions.Keys
	h.Subscriptions.Keys = webhooktest.OtherKeys(t)
	h.Publish(t)
	if err := h.Deliveries.Deliver(t.Context(), h.Job(t), webhooktest.First); err != nil {
		t.Fatal(err)
	}
	want("after one under a wrong key", 0, 1)
	h.Subscriptions.Keys = keys
	h.Reopen(t, made)
	want("with the key back", 1, 0)
}

// TestScrapeTellsTheNearestLimit of connections: a role's limit may be lower than the server's.
func TestScrapeTellsTheNearestLimit(t *testing.T) {
	t.Parallel()
	whole := pgtest.New(t)
	const name, most = "drawbridge_database_max_connections", 40
	server := gauge(t, whole, name)
	_, address := pgtest.Role(t, whole, fmt.Sprint("CONNECTION LIMIT ", most))
	db, err := postgres.Open(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	// For other roles it is at most the server's limit, less what the role may not open.
	if got := gauge(t, db, name); got < most || got >= server {
		t.Errorf("the role is refused at %g connections, the server has %g", got, server)
	}
	if got := gauge(t, whole, name); got != server {
		t.Errorf("a superuser is refused at %g connections, the server has %g", got, server)
	}
}

// TestScrapeCountsTheServersConnections: the limit applies to all databases together.
func TestScrapeCountsTheServersConnections(t *testing.T) {
	t.Parallel()
	db, neighbour := pgtest.New(t), pgtest.New(t)
	const sessions = 12
	for range sessions {
		held, err := neighbour.Connx(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = held.Close() }) // the pool may be closed already
	}
	if got := gauge(t, db, `drawbridge_database_connections{state="idle"}`); got < sessions {
		t.Errorf("%g connections are idle, want %d at least", got, sessions)
	}
}
