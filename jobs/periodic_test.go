package jobs_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverdatabasesql"

	"drawbridge/internal/postgres/pgtest"
	"drawbridge/internal/waittest"
	"drawbridge/jobs"
)

// TestChoresArePeriodic starts a queue that works none of its jobs: every chore is there, without
// anybody having asked for it.
func TestChoresArePeriodic(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	config := jobs.Config(jobs.Deps{DB: db})
	config.Queues = map[string]river.QueueConfig{"nobodys": {MaxWorkers: 1}}
	client, err := river.NewClient(riverdatabasesql.New(db.DB.DB), config)
	if err != nil {
		t.Fatal(err)
	}
	if err := client.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"freeze_statements", "housekeep", "probe_endpoints", "resume_mail", "retain",
		"tally_outcomes", "watch_health",
	}
	var kinds []string
	waittest.Until(t, "every kind of periodic job was there", func() bool {
		err := db.SelectContext(t.Context(), &kinds, `SELECT DISTINCT kind FROM river_job`)
		if err != nil {
			t.Fatal(err)
		}
		return len(kinds) >= len(want)
	})
	if err := client.Stop(t.Context()); err != nil {
		t.Error(err)
	}
	if slices.Sort(kinds); !slices.Equal(kinds, want) {
		t.Errorf("periodic jobs (-want +got):\n%s", cmp.Diff(want, kinds))
	}
}
