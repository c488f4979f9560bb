package migrations_test

import (
	"testing"

	"drawbridge/internal/postgres/pgtest"
	"drawbridge/migrations"
)

// TestMailsThatWerePassedByAreNoted: until its migration nothing noted e-mails that were queued
// when the time of their text was over.
func TestMailsThatWerePassedByAreNoted(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	for done := ""; done != "0104_late_mails.sql"; {
		var err error
		if done, err = migrations.Down(t.Context(), db.DB.DB); err != nil || done == "" {
			t.Fatalf("migration 104 was not taken back (%v)", err)
		}
	}
	for _, statement := range []string{
		`INSERT INTO retention_progress VALUES ('emails', '2026-06-01')`,
		`INSERT INTO emails (email_uid, kind, to_name, to_address, params, state, created_at,
		                     finished_at, content_removed_at)
		 SELECT gen_random_uuid(), 'task', name, 'a@example.com', '{}', 'sent', at, '2026-06-02', gone
		   FROM (VALUES ('emptied', '2026-05-01'::timestamptz, '2026-06-01'::timestamptz),
		                ('late', '2026-05-01', NULL),
		                ('new', '2026-06-02', NULL)) AS mail (name, at, gone)`,
	} {
		if _, err := db.ExecContext(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	if err := migrations.Up(t.Context(), db.DB.DB); err != nil {
		t.Fatal(err)
	}
	var noted []string
	err := db.SelectContext(t.Context(), &noted, `
		SELECT e.to_name FROM retention_email_leftovers JOIN emails e USING (email_uid)`)
	if err != nil || len(noted) != 1 || noted[0] != "late" {
		t.Errorf("noted are %v, %v", noted, err)
	}
}
