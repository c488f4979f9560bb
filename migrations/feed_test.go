package migrations_test

import (
	"strings"
	"testing"

	"drawbridge/internal/postgres/pgtest"
	"drawbridge/migrations"
)

// TestFeedKnowsWhatWasRemovedBefore: an upgrade finds up to where places are missing, and what
// is removed later counts, whichever release removes it.
func TestFeedKnowsWhatWasRemovedBefore(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		kept  string
		head  int
		older int
		later int
	}{
		"nothing yet":              {"{}", 0, 0, 0},
		"all are there":            {"{1,2,3}", 3, 0, 3},
		"the oldest went":          {"{3,4}", 4, 2, 3},
		"one stayed behind others": {"{1,4,5,8}", 8, 7, 7},
		"all but the oldest went":  {"{1,2}", 5, 5, 5},
		"all went":                 {"{}", 9, 9, 9},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := pgtest.New(t)
			for done := ""; !strings.HasPrefix(done, "0057"); {
				var err error
				if done, err = migrations.Down(t.Context(), db.DB.DB); err != nil || done == "" {
					t.Fatalf("migration 57 was not taken back (%v)", err)
				}
			}
			exec := func(statement string, args ...any) {
				t.Helper()
				if _, err := db.ExecContext(t.Context(), statement, args...); err != nil {
					t.Fatal(err)
				}
			}
			want := func(when string, removed int) {
				t.Helper()
				var got int
				if err := db.GetContext(t.Context(), &got, `SELECT removed FROM feed_head`); err != nil ||
					got != removed {
					t.Errorf("%s %d is the newest that was removed, want %d (%v)", when, got, removed, err)
				}
			}
			exec(`
				INSERT INTO feed
				SELECT position, gen_random_uuid(), now(), gen_random_uuid(), gen_random_uuid(),
				       'task.created'
				  FROM unnest($1::bigint[]) AS position`, test.kept)
			exec(`UPDATE feed_head SET position = $1`, test.head)
			if err := migrations.Up(t.Context(), db.DB.DB); err != nil {
				t.Fatal(err)
			}
			want("after the upgrade", test.older)
			exec(`DELETE FROM feed WHERE position IN (2, 3)`)
			want("after a removal", max(test.older, test.later))
		})
	}
}
