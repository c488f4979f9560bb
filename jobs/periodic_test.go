package jobs_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverdatabasesql"

	"drawbridge/internal/postgres/pgtest"
	"drawbridge/internal/waittest"
	"drawbridge/jobs"
)

// TestChoresArePeriodic starts a queue that works none of its jobs: every chore is queued
// without being requested.
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

// TestChoresFollowTheClockBack: neither runs planned for later than they should now come,
// nor runs done at a time that comes again, keep a frequent chore from its next run.
func TestChoresFollowTheClockBack(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	var at atomic.Pointer[time.Time] // halfway through a minute
	at.Store(new(time.Date(2026, 11, 29, 12, 0, 30, 0, time.UTC)))
	db.Now = func() time.Time { return *at.Load() }
	config := jobs.Config(jobs.Deps{DB: db})
	config.Queues = map[string]river.QueueConfig{"nobodys": {MaxWorkers: 1}}
	client, err := river.NewClient(riverdatabasesql.New(db.DB.DB), config)
	if err != nil {
		t.Fatal(err)
	}
	if err := client.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	following, stop := context.WithCancel(t.Context())
	var beside sync.WaitGroup
	beside.Go(func() { jobs.FollowClock(following, db, client.PeriodicJobs(), config.PeriodicJobs) })
	made := func(want ...string) {
		t.Helper()
		waittest.Until(t, "there was another round of the chores", func() bool {
			return pgtest.Value[int](t, db,
				`SELECT count(DISTINCT kind) FROM river_job WHERE state = 'available'`) == len(want)
		})
		got := pgtest.Value[string](t, db,
			`SELECT string_agg(DISTINCT kind, ' ') FROM river_job WHERE state = 'available'`)
		if got != strings.Join(want, " ") {
			t.Errorf("at %s there are %s, want %s", at.Load(), got, want)
		}
		pgtest.Exec(t, db, `UPDATE river_job SET state = 'completed', finalized_at = now()
		                     WHERE state = 'available'`)
	}
	quick := []string{
		"freeze_statements", "probe_endpoints", "resume_mail", "tally_outcomes", "watch_health",
	}
	made("freeze_statements", "housekeep", "probe_endpoints", "resume_mail", "retain",
		"tally_outcomes", "watch_health")
	at.Store(new(at.Load().Add(-20 * time.Second)))
	made(quick...)
	stop()
	beside.Wait()
	if err := client.Stop(t.Context()); err != nil {
		t.Error(err)
	}
}
