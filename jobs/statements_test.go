package jobs_test

import (
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"

	"drawbridge/internal/app/apptest"
	"drawbridge/internal/postgres"
	"drawbridge/internal/postgres/pgtest"
	"drawbridge/internal/queue"
	"drawbridge/internal/secret"
	"drawbridge/internal/waittest"
	"drawbridge/jobs"
)

// clerk is a process that works the chores, one at a time.
type clerk struct {
	*apptest.Harness

	client *river.Client[pgx.Tx]
	// rounds receives the runs of jobs that have ended.
	rounds <-chan *river.Event
}

// newClerk starts one on a database that others may use too; it stops with the test.
func newClerk(t *testing.T, db *postgres.DB, key string) *clerk {
	t.Helper()
	c := &clerk{Harness: apptest.On(t, db, "DRAWBRIDGE_SECRETS_KEY", key)}
	pool, err := pgxpool.New(t.Context(), db.URL())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	config := c.QueueConfig()
	config.ID = uuid.NewString()
	config.Queues = map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: 1}}
	c.client, err = river.NewClient(queue.NewDriver(pool, db), config)
	if err != nil {
		t.Fatal(err)
	}
	rounds, cancel := c.client.Subscribe(river.EventKindJobCompleted, river.EventKindJobFailed)
	t.Cleanup(cancel)
	c.rounds = rounds
	if err := c.client.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { <-c.client.Stopped() }) // the test's context has ended
	return c
}

// wantRound waits until a run that makes statements has succeeded.
func (c *clerk) wantRound(t *testing.T) {
	t.Helper()
	for {
		round := waittest.Receive(t, "the end of a round of statements", c.rounds)
		if round.Job.Kind != (jobs.FreezeStatementsArgs{}).Kind() {
			continue
		}
		if round.Kind != river.EventKindJobCompleted {
			t.Errorf("a round failed: %+v", round.Job.Errors)
		}
		return
	}
}

// TestStatementsAreMadeOnce makes two processes make the same days' statements at the same
// time: one in the run that the queue begins by itself, the other in one that was requested.
func TestStatementsAreMadeOnce(t *testing.T) {
	t.Parallel()
	db, key := pgtest.New(t), secret.GenerateKey()
	other, err := postgres.Open(t.Context(), db.URL())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = other.Close() })
	setup := apptest.On(t, db, "DRAWBRIDGE_SECRETS_KEY", key)
	owner := setup.NewPartner(t, "Solar Partners")
	const merchants = 3
	for range merchants {
		setup.NewMerchant(t, owner, "Sunny Roofs")
	}
	setup.Exec(t, `UPDATE merchants SET created_at = created_at - interval '9 days'`)

	// Nobody can store a statement, so both have composed theirs when the first one is stored.
	hold := pgtest.Begin(t, db, `LOCK TABLE statements IN SHARE MODE`)
	first, second := newClerk(t, db, key), newClerk(t, other, key)
	if _, err := second.client.Insert(t.Context(), jobs.FreezeStatementsArgs{}, nil); err != nil {
		t.Fatal(err)
	}
	waittest.Until(t, "both processes make statements", func() bool {
		return setup.Count(t, `
			SELECT count(*)
			  FROM pg_stat_activity
			 WHERE datname = current_database()
			   AND wait_event_type = 'Lock'
			   AND query LIKE '%statement%'`) == 2
	})
	if err := hold.Rollback(); err != nil {
		t.Fatal(err)
	}
	first.wantRound(t)
	second.wantRound(t)

	days := setup.Count(t, `SELECT count(*) FROM statement_days WHERE finished_at IS NOT NULL`)
	made := setup.Count(t, `SELECT count(*) FROM statements`)
	corrected := setup.Count(t, `SELECT count(*) FROM statements WHERE version > 1`)
	if days == 0 || made != days*merchants || corrected != 0 ||
		setup.Count(t, `SELECT count(*) FROM statement_days WHERE finished_at IS NULL`) != 0 {
		t.Errorf("%d merchants have %d statements of %d days, %d of them corrections",
			merchants, made, days, corrected)
	}
}
