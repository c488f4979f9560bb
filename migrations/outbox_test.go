package migrations_test

import (
	"strings"
	"testing"

	"drawbridge/internal/postgres/pgtest"
	"drawbridge/migrations"
)

// TestTheWayBackKeepsWhatWaits: the release before has no outbox; what waits there when its
// migration is taken back is delivered and published as that release does it, and the feed
// goes on behind its newest position.
func TestTheWayBackKeepsWhatWaits(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	exec := func(statement string, args ...any) {
		t.Helper()
		if _, err := db.ExecContext(t.Context(), statement, args...); err != nil {
			t.Fatal(err)
		}
	}
	exec(`
		WITH partner AS (
			INSERT INTO partners VALUES (gen_random_uuid(), 'Solar Partners', now()) RETURNING partner_uid
		), merchant AS (
			INSERT INTO merchants
			SELECT gen_random_uuid(), partner_uid, 'Sunny Roofs', now() FROM partner
			RETURNING merchant_uid, partner_uid
		), application AS (
			INSERT INTO applications (application_uid, merchant_uid, partner_uid, source, status,
			                          communications, requested_amount, borrower_first_name,
			                          borrower_last_name, borrower_email, project_name, created_at,
			                          updated_at)
			SELECT gen_random_uuid(), merchant_uid, partner_uid, 'partner', 'Approved', 'enabled', 1,
			       'Ana', 'Lima', 'ana@example.com', 'Roof', now(), now()
			  FROM merchant
			RETURNING application_uid, merchant_uid, partner_uid
		), subscription AS (
			INSERT INTO subscriptions (subscription_uid, partner_uid, url, auth, events, all_merchants,
			                           state, created_at, updated_at)
			SELECT gen_random_uuid(), partner_uid, 'https://hooks.example.com', 'none', '{all}', true,
			       'active', now(), now()
			  FROM partner
			RETURNING subscription_uid
		), event AS (
			INSERT INTO events (event_uid, occurred_at, kind, partner_uid, merchant_uid, application_uid,
			                    sequence, subject, status, body, passed_over)
			SELECT gen_random_uuid(), now(), 'task.created', partner_uid, merchant_uid, application_uid, 1,
			       'application/1', 'Pending', '{}', '[]'
			  FROM application
			RETURNING event_uid, occurred_at, merchant_uid, application_uid
		)
		INSERT INTO outbox (event_uid, occurred_at, recorded_at, kind, status, merchant_uid,
		                    application_uid, owed, delivery_uids)
		SELECT event_uid, occurred_at, now(), 'task.created', 'Pending', merchant_uid, application_uid,
		       ARRAY[subscription_uid], ARRAY[gen_random_uuid()]
		  FROM event
		 CROSS JOIN subscription`)
	exec(`
		INSERT INTO feed
		SELECT 7, event_uid, occurred_at, merchant_uid, application_uid, kind FROM outbox`)
	for done := ""; !strings.HasPrefix(done, "0101"); {
		var err error
		if done, err = migrations.Down(t.Context(), db.DB.DB); err != nil || done == "" {
			t.Fatalf("migration 101 was not taken back (%v)", err)
		}
	}
	for what, query := range map[string]string{
		"a delivery that is due": `
			SELECT count(*)
			  FROM deliveries
			  JOIN events USING (event_uid)
			 WHERE state = 'pending'
			   AND NOT queued
			   AND next_attempt_at <= now()
			   AND event = kind`,
		"an event for the feed":      `SELECT count(*) FROM feed_outbox JOIN events USING (event_uid)`,
		"the feed's newest position": `SELECT count(*) FROM feed_head WHERE position = 7`,
	} {
		var count int
		if err := db.GetContext(t.Context(), &count, query); err != nil || count != 1 {
			t.Errorf("%s: found %d (%v)", what, count, err)
		}
	}
	if err := migrations.Up(t.Context(), db.DB.DB); err != nil {
		t.Fatal(err)
	}
}
