package retention_test

import (
	"testing"
	"time"

	"github.com/google/uuid"
)

// bulk writes a bulk re-send of two thousand and some lines, the last of an application, that ended
// at a time, or has not ended if that is zero.
func (a *archive) bulk(application uuid.UUID, created, ended time.Time) uuid.UUID {
	a.t.Helper()
	bulk := uuid.New()
	state, end := "running", any(nil)
	if !ended.IsZero() {
		state, end = "finished", ended
	}
	a.exec(`
		INSERT INTO bulk_resends (bulk_uid, partner_uid, kind, scope, pace, state, reason, created_by,
		                          created_at, confirmed_by, confirmed_at, ended_at)
		VALUES ($1, $2, 'filter', '{}', 20, $3, 'why', 'ada', $4, 'ada', $4, $5)`,
		bulk, a.partner, state, created, end)
	a.exec(`
		INSERT INTO bulk_resend_lanes (bulk_uid, subscription_uid, partner_uid, paced_at, moved_at)
		VALUES ($1, $2, $3, $4, $4)`, bulk, a.subscription, a.partner, created)
	a.exec(`
		INSERT INTO bulk_resend_items (bulk_uid, position, subscription_uid, event_uid, event_at, event,
		                               application_uid, status, test, state)
		SELECT $1, n, $2, gen_random_uuid(), $3, 'task.created', CASE n WHEN 2100 THEN $4::uuid END,
		       'Pending', false, 'cancelled'
		  FROM generate_series(1, 2100) n`, bulk, a.subscription, created, application)
	return bulk
}

func TestBulkResendsGoWithTheirMonths(t *testing.T) {
	t.Parallel()
	a := newArchive(t)
	held := a.application()
	a.hold(held)
	old := today.AddDate(0, -20, 0)
	due := a.bulk(a.application(), old, old.AddDate(0, 1, 0))
	kept := map[string]uuid.UUID{
		"with an application under a legal hold": a.bulk(held, old, old.AddDate(0, 1, 0)),
		"that has not ended":                     a.bulk(a.application(), old, time.Time{}),
		"that ended lately":                      a.bulk(a.application(), old, today.AddDate(0, -1, 0)),
	}
	settings, err := a.Settings(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if plan, err := a.Plan(t.Context(), settings); err != nil || plan.Bulks != 1 {
		t.Errorf("the plan says %d, %v", plan.Bulks, err)
	}
	if report := a.run(); report.Bulks != 1 {
		t.Errorf("%d were removed", report.Bulks)
	}
	for _, table := range []string{"bulk_resends", "bulk_resend_lanes", "bulk_resend_items"} {
		if n := a.count(`SELECT count(*) FROM `+table+` WHERE bulk_uid = $1`, due); n != 0 {
			t.Errorf("%d rows of it are left in %s", n, table)
		}
	}
	for name, bulk := range kept {
		if n := a.count(`
			SELECT count(*) FROM bulk_resend_items WHERE bulk_uid = $1`, bulk); n != 2100 {
			t.Errorf("of one %s, %d lines are left", name, n)
		}
	}
	if report := a.run(); report.Bulks != 0 {
		t.Errorf("a second run removed %d", report.Bulks)
	}
}
