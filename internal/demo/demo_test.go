package demo_test

import (
	"context"
	"testing"

	"drawbridge/internal/demo"
	"drawbridge/internal/postgres"
	"drawbridge/internal/postgres/pgtest"
)

// TestHistory checks what a user sees after a first start: a living system that nothing shows to
// be made up, and that a second start leaves as it is.
func TestHistory(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	interrupt(t, db)
	if err := demo.History(t.Context(), db); err != nil {
		t.Fatal(err)
	}
	for what, query := range map[string]string{
		"a failing subscription": `SELECT count(*) FROM subscriptions WHERE state = 'failing'`,
		"a slow subscription": `
			SELECT count(*)
			  FROM (SELECT FROM deliveries GROUP BY subscription_uid
			        HAVING percentile_disc(0.5) WITHIN GROUP (ORDER BY last_duration_us) > 1000000) slow`,
		"an open alert": `SELECT count(*) FROM attention_items WHERE closed_at IS NULL`,
		"draws in five states": `
			SELECT count(*) FROM (SELECT 1 HAVING (SELECT count(DISTINCT status) FROM disbursements) = 5) x`,
		"mails sent and failed": `
			SELECT count(*) FROM (SELECT 1 HAVING (SELECT count(DISTINCT state) FROM emails) > 1) x`,
		"a bulk re-send with items": `
			SELECT count(*) FROM bulk_resends JOIN bulk_resend_items i USING (bulk_uid)
			  JOIN deliveries d ON d.delivery_uid = i.new_uid AND d.resend_of = i.delivery_uid`,
		"failures that were made good": `SELECT count(*) FROM deliveries WHERE made_good_by IS NOT NULL`,
		"tallies":                      `SELECT count(*) FROM subscription_hours`,
	} {
		if got := pgtest.Count(t, db, query); got == 0 {
			t.Errorf("there is not %s", what)
		}
	}
	for what, query := range map[string]string{
		"a partner with the seed's mark": `SELECT count(*) FROM partners WHERE name LIKE '%seed%'`,
		"an application with the seed's mark": `
			SELECT count(*) FROM applications
			 WHERE external_reference LIKE 'SEED%' OR borrower_email LIKE '%seed%'`,
		"a product with the seed's mark": `SELECT count(*) FROM products WHERE code LIKE 'SEED%'`,
		"an event of another reference": `
			SELECT count(*) FROM events e JOIN applications a USING (application_uid)
			 WHERE e.reference IS DISTINCT FROM a.external_reference`,
		"a name with a number": `
			SELECT count(*) FROM applications WHERE borrower_last_name ~ '\d'`,
		"an alert without a reason": `
			SELECT count(*) FROM attention_items WHERE length(detail) < 20`,
		"what is due in years": `
			SELECT count(*) FROM deliveries WHERE next_attempt_at > now() + interval '3 days'`,
		"what a worker would send": `
			SELECT count(*) FROM deliveries WHERE state IN ('pending', 'retrying')`,
		"an error that says it is fine": `
			SELECT count(*) FROM attempts WHERE error_class <> '' AND response_body = '{"ok":true}'`,
		"a re-send that arrived beside a failure": `
			SELECT count(*) FROM deliveries d JOIN deliveries o ON o.delivery_uid = d.resend_of
			 WHERE o.made_good_by IS DISTINCT FROM d.delivery_uid`,
	} {
		if got := pgtest.Count(t, db, query); got != 0 {
			t.Errorf("there is %s: %d", what, got)
		}
	}
	const all = `SELECT (SELECT count(*) FROM deliveries) + (SELECT count(*) FROM partners) +
		(SELECT count(*) FROM attention_items) + (SELECT count(*) FROM bulk_resends)`
	before := pgtest.Count(t, db, all)
	if err := demo.History(t.Context(), db); err != nil {
		t.Fatal(err)
	}
	if got := pgtest.Count(t, db, all); got != before {
		t.Errorf("a second start made %d rows more", got-before)
	}
}

// interrupt ends a first start during its last step before the figures.
func interrupt(t *testing.T, db *postgres.DB) {
	t.Helper()
	start, end := context.WithCancel(t.Context())
	err := db.InTx(t.Context(), func(tx *postgres.Tx) error {
		if _, err := tx.ExecContext(t.Context(), `LOCK TABLE audit_log`); err != nil {
			return err
		}
		ended := make(chan error, 1)
		go func() { ended <- demo.History(start, db) }()
		pgtest.WaitForLock(t, db)
		end()
		if err := <-ended; err == nil {
			t.Error("the start was not interrupted")
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
