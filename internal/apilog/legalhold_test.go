package apilog_test

import (
	"testing"
	"time"

	"github.com/google/uuid"

	"drawbridge/internal/apilog"
	"drawbridge/internal/postgres/pgtest"
)

// A day is dropped except for the requests of an application under a legal hold, and completely
// once the hold is released.
func TestDropKeepsWhatIsUnderALegalHold(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	exec := func(query string, args ...any) {
		t.Helper()
		if _, err := db.ExecContext(t.Context(), query, args...); err != nil {
			t.Fatal(err)
		}
	}
	partner, merchant, held := uuid.New(), uuid.New(), uuid.New()
	now := time.Now().UTC()
	exec(`INSERT INTO partners VALUES ($1, 'P', $2)`, partner, now)
	exec(`INSERT INTO merchants VALUES ($1, $2, 'M', $3)`, merchant, partner, now)
	exec(`
		INSERT INTO applications (application_uid, merchant_uid, partner_uid, source, status,
		                          communications, requested_amount, borrower_first_name,
		                          borrower_last_name, borrower_email, project_name,
		                          created_at, updated_at)
		VALUES ($1, $2, $3, 'partner', 'Approved', 'enabled', 1, 'A', 'L', 'a@example.com', 'Roof',
		        $4, $4)`, held, merchant, partner, now)
	exec(`
		INSERT INTO application_holds (application_uid, reason, placed_by, placed_at)
		VALUES ($1, 'case 7', 'legal@lender.example', $2)`, held, now)
	old := now.AddDate(0, 0, -3)
	write(t, db, entry(old, func(e *apilog.Entry) { e.ApplicationUID = held }))
	write(t, db, entry(old, nil))
	s := &apilog.Service{DB: db}
	drop := func(want int) {
		t.Helper()
		before := len(list(t, db, apilog.Filter{}))
		days, requests, err := s.CountDue(t.Context(), now.AddDate(0, 0, -1), 10)
		if err != nil || days != want {
			t.Errorf("%d days are due, want %d: %v", days, want, err)
		}
		dropped, err := s.Drop(t.Context(), now.AddDate(0, 0, -1))
		if err != nil || dropped != want {
			t.Errorf("dropped %d days, want %d: %v", dropped, want, err)
		}
		if gone := before - len(list(t, db, apilog.Filter{})); gone != requests {
			t.Errorf("%d requests went, %d were due", gone, requests)
		}
	}
	before := len(list(t, db, apilog.Filter{}))
	drop(2) // its day, and the empty one after it
	left := list(t, db, apilog.Filter{})
	if before != 2 || len(left) != 1 || left[0].ApplicationUID != held {
		t.Errorf("%d requests, then %d", before, len(left))
	}
	drop(0)
	exec(`
		UPDATE application_holds
		   SET released_at = $1, released_by = 'legal@lender.example', release_reason = 'closed'`, now)
	drop(1)
	if left := list(t, db, apilog.Filter{}); len(left) != 0 {
		t.Errorf("%d requests are left after the release", len(left))
	}
}
