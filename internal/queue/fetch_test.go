package queue_test

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/jmoiron/sqlx"
	"github.com/riverqueue/river/riverdriver"
	"github.com/riverqueue/river/rivertype"

	"drawbridge/internal/postgres"
	"drawbridge/internal/postgres/pgtest"
	"drawbridge/internal/queue"
)

// fetching is the jobs of a queue and a client that fetches them.
type fetching struct {
	db       *postgres.DB
	pool     *pgxpool.Pool
	driver   *queue.Driver
	executor riverdriver.Executor
}

func newFetching(t *testing.T) *fetching {
	t.Helper()
	f := &fetching{db: pgtest.New(t)}
	var err error
	if f.pool, err = queue.Connect(t.Context(), f.db); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.pool.Close)
	f.driver = queue.NewDriver(f.pool, f.db)
	f.executor = f.driver.GetExecutor()
	return f
}

// add inserts jobs of a priority that became due that long ago, in order.
func (f *fetching) add(t *testing.T, count, priority int, ago time.Duration) {
	t.Helper()
	f.exec(t, `
		INSERT INTO river_job (state, queue, kind, args, max_attempts, priority, scheduled_at, errors)
		SELECT 'available', 'hot', 'any', jsonb_build_object('number', n), 25, $2,
		       clock_timestamp() - make_interval(secs => $3) + n * interval '1 microsecond',
		       ARRAY['{"error": "lost", "attempt": 1}'::jsonb]
		  FROM generate_series(1, $1) AS n`, count, priority, ago.Seconds())
}

func (f *fetching) exec(t *testing.T, statement string, args ...any) {
	t.Helper()
	pgtest.Exec(t, f.db, statement, args...)
}

// fetch takes up to most jobs.
func (f *fetching) fetch(ctx context.Context, t *testing.T, most int) []*rivertype.JobRow {
	t.Helper()
	found, err := f.executor.JobGetAvailable(ctx, &riverdriver.JobGetAvailableParams{
		ClientID: "tester", MaxAttemptedBy: 3, MaxToLock: most, Queue: "hot",
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// tally counts fetched jobs by priority.
func tally(jobs []*rivertype.JobRow) string {
	var counts [5]int
	for _, job := range jobs {
		counts[job.Priority]++
	}
	return fmt.Sprint(counts[1:])
}

// TestFetchReportsALostResult: when the result of a fetch is lost, FetchLost is called with the
// queue that may have handed jobs out, and when.
func TestFetchReportsALostResult(t *testing.T) {
	t.Parallel()
	f := newFetching(t)
	var reported []string
	began := f.db.Now()
	f.driver.FetchLost = func(queue string, from, until time.Time) {
		if from.Before(began) || until.Before(from) || until.After(f.db.Now()) {
			t.Errorf("told of a fetch from %s until %s, want after %s", from, until, began)
		}
		reported = append(reported, queue)
	}
	f.fetch(t.Context(), t, 10)
	f.exec(t, `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
	            WHERE datname = current_database() AND pid <> pg_backend_pid()`)
	params := &riverdriver.JobGetAvailableParams{
		ClientID: "tester", MaxAttemptedBy: 3, MaxToLock: 10, Queue: "hot",
	}
	_, err := f.executor.JobGetAvailable(t.Context(), params)
	if err == nil || fmt.Sprint(reported) != "[hot]" {
		t.Errorf("a fetch over a connection that was ended: %v, told of %s", err, reported)
	}
}

// TestANewConnectionIsAskedBeforeAFetch: it may lead to another database than the earlier ones,
// from which nothing may be taken. Other statements on it are not held up.
func TestANewConnectionIsAskedBeforeAFetch(t *testing.T) {
	t.Parallel()
	f := newFetching(t)
	f.add(t, 4, 1, time.Minute)
	may, asked := true, 0
	f.driver.MayFetch = func(ctx context.Context, made *pgx.Conn) (bool, error) {
		asked++
		return may, made.Ping(ctx)
	}
	f.driver.FetchLost = func(string, time.Time, time.Time) { t.Error("a fetch broke") }
	take := func(want string, asks int) {
		t.Helper()
		if got := tally(f.fetch(t.Context(), t, 1)); got != want || asked != asks {
			t.Errorf("fetched %s after %d questions, want %s after %d", got, asked, want, asks)
		}
	}
	take("[1 0 0 0]", 1)
	take("[1 0 0 0]", 1)
	f.pool.Reset()
	may = false
	take("[0 0 0 0]", 2)
	take("[0 0 0 0]", 3)
	if _, err := f.pool.Exec(t.Context(), `SELECT 1`); err != nil || asked != 3 {
		t.Errorf("another statement after %d questions: %v", asked, err)
	}
	may = true
	take("[1 0 0 0]", 4)
	take("[1 0 0 0]", 4)
	f.driver = queue.NewDriver(f.pool, f.db) // as after a quarantine
	f.executor = f.driver.GetExecutor()
	f.driver.MayFetch = func(context.Context, *pgx.Conn) (bool, error) { return false, nil }
	take("[0 0 0 0]", 4) // from the beginning
}

// TestFetchesAreHeeded: the process learns of the server's state, such as a full disk, from its
// fetches, too.
func TestFetchesAreHeeded(t *testing.T) {
	t.Parallel()
	f := newFetching(t)
	fetch := func() error {
		_, err := f.executor.JobGetAvailable(t.Context(), &riverdriver.JobGetAvailableParams{
			ClientID: "tester", MaxAttemptedBy: 3, MaxToLock: 5, Queue: "hot",
		})
		return err
	}
	fail := func(state string) {
		t.Helper()
		f.exec(t, `
			CREATE OR REPLACE FUNCTION fail_fetch() RETURNS trigger LANGUAGE plpgsql AS
			$$ BEGIN RAISE EXCEPTION 'as told' USING ERRCODE = '`+state+`'; END $$`)
		if fetch() == nil {
			t.Fatal("the fetch did not fail")
		}
	}
	if err := fetch(); err != nil { // so that the next ones begin at the head
		t.Fatal(err)
	}
	f.add(t, 10, 1, 0)
	f.exec(t, `CREATE FUNCTION fail_fetch() RETURNS trigger LANGUAGE plpgsql AS
		$$ BEGIN RETURN NEW; END $$`)
	f.exec(t, `CREATE TRIGGER fail BEFORE UPDATE ON river_job
		FOR EACH ROW EXECUTE FUNCTION fail_fetch()`)
	// No statement of the database's own pool finds that the disk is full: it writes nothing.
	f.exec(t, `CREATE FUNCTION meet_full_disk() RETURNS event_trigger LANGUAGE plpgsql AS
		$$ BEGIN RAISE EXCEPTION 'no room' USING ERRCODE = '53100'; END $$`)
	f.exec(t, `CREATE EVENT TRIGGER full_disk ON ddl_command_start WHEN TAG IN ('CREATE TABLE AS')
		EXECUTE FUNCTION meet_full_disk()`)
	for _, step := range []struct{ state, want string }{
		{"22000", ""}, {"53100", postgres.DiskFull},
	} {
		fail(step.state)
		if got, err := f.db.Unwritable(t.Context()); err != nil || got != step.want {
			t.Errorf("after %s in a fetch: %q, %v; want %q", step.state, got, err, step.want)
		}
	}
	era := f.db.Era()
	if fail("25006"); f.db.Era() == era {
		t.Error("connections to a server that lets nobody write are kept")
	}
}

// TestFetchTakesEveryJobOnce works off priorities in order, with late and handed back jobs.
func TestFetchTakesEveryJobOnce(t *testing.T) {
	t.Parallel()
	f := newFetching(t)
	f.add(t, 25, 1, time.Hour)
	f.add(t, 12, 2, 2*time.Hour)
	f.add(t, 1, 4, 3*time.Hour)
	taken := map[int64]bool{}
	take := func(want string) {
		t.Helper()
		found := f.fetch(t.Context(), t, 10)
		if got := tally(found); got != want {
			t.Errorf("fetched %s, want %s", got, want)
		}
		for _, job := range found {
			if taken[job.ID] || job.Attempt != 1 || job.State != rivertype.JobStateRunning ||
				fmt.Sprint(job.AttemptedBy) != "[tester]" || job.AttemptedAt == nil ||
				len(job.Errors) != 1 || job.Errors[0].Error != "lost" || !json.Valid(job.EncodedArgs) {
				t.Errorf("fetched twice or wrongly: %+v", job)
			}
			taken[job.ID] = true
		}
	}
	take("[10 0 0 0]")
	take("[10 0 0 0]")
	take("[5 5 0 0]")
	f.add(t, 3, 1, 0)
	take("[3 7 0 0]")
	take("[0 0 0 1]")
	take("[0 0 0 0]")
	f.add(t, 2, 1, time.Second) // the transaction took a second
	take("[2 0 0 0]")
	f.add(t, 2, 3, time.Hour)  // handed back
	f.add(t, 2, 4, -time.Hour) // made before the clock went back
	take("[0 0 0 0]")
	ctx, stop := context.WithCancel(t.Context())
	var looking sync.WaitGroup
	looking.Go(func() { f.driver.ScanBehind(ctx) })
	defer looking.Wait()
	defer stop()
	for deadline := time.Now().Add(time.Minute); len(taken) < 47; {
		if time.Now().After(deadline) {
			t.Fatal("jobs behind or far ahead of the head are never fetched")
		}
		for _, job := range f.fetch(t.Context(), t, 10) {
			taken[job.ID] = true
		}
	}
}

// TestFetchDoesNotReadTheDead: while a transaction is open, the entries of finished jobs stay in
// the index. The first fetch reads all of them, and those from the head on next to none.
func TestFetchDoesNotReadTheDead(t *testing.T) {
	t.Parallel()
	const dead = 20_000
	f := newFetching(t)
	pgtest.Hold(t, f.db)
	f.add(t, dead, 1, time.Hour)
	f.exec(t, `DELETE FROM river_job WHERE queue = 'hot'`)
	alone := sqlx.NewDb(stdlib.OpenDBFromPool(f.pool), "pgx")
	read := func() int {
		t.Helper()
		f.add(t, 1, 1, 0)
		return pgtest.Blocks(t, f.db, alone, []string{"river_job"}, func() {
			if found := f.fetch(t.Context(), t, 10); len(found) != 1 {
				t.Fatalf("fetched %s", tally(found))
			}
		})
	}
	whole := read()
	ticker := time.NewTicker(100 * time.Millisecond)
	defer ticker.Stop()
	for range 20 {
		<-ticker.C
		if behind := read(); behind*20 > whole {
			t.Fatalf("a fetch read %d blocks over %d dead jobs, from the beginning it is %d",
				behind, dead, whole)
		}
	}
}

// TestFetchingIsByKeyInAFullQueue: the planner's statistics are of the queue when it was empty, as
// it usually is. Neither a fetch nor the end of jobs then reads all waiting jobs.
func TestFetchingIsByKeyInAFullQueue(t *testing.T) {
	t.Parallel()
	const waiting = 20_000
	f := newFetching(t)
	f.add(t, 1, 1, 0)
	f.fetch(t.Context(), t, 1)
	f.exec(t, `VACUUM ANALYZE river_job`)
	f.add(t, 1, 1, 0)
	f.fetch(t.Context(), t, 1) // its plan is kept
	f.add(t, waiting, 3, 0)
	f.add(t, 1, 1, 0)
	alone := sqlx.NewDb(stdlib.OpenDBFromPool(f.pool), "pgx")
	var job *rivertype.JobRow
	read := pgtest.Blocks(t, f.db, alone, []string{"river_job"}, func() {
		job = f.fetch(t.Context(), t, 1)[0]
	})
	if job.Priority != 1 || read > 100 {
		t.Errorf("fetching a job of priority %d read %d blocks beside %d that wait",
			job.Priority, read, waiting)
	}
	read = pgtest.Blocks(t, f.db, alone, []string{"river_job"}, func() {
		if ended := f.complete(t, 1_000_000, 1_000_001, 1_000_002); len(ended) > 0 {
			t.Errorf("jobs that are gone ended: %v", ended)
		}
	})
	if read > 250 { // an index is read once at most
		t.Errorf("to find that jobs are gone took %d blocks beside %d that wait", read, waiting)
	}
	ended := f.complete(t, 1_000_000, job.ID, 1_000_001)
	if len(ended) != 1 || ended[0].ID != job.ID || ended[0].State != rivertype.JobStateCompleted {
		t.Errorf("of three jobs, two of which are gone, ended %+v", ended)
	}
}

// The library writes the end of a run again until it gets a result, and a frozen process writes it
// late: by then another run may have the job, here or elsewhere.
func TestAJobIsEndedByWhoRunsIt(t *testing.T) {
	t.Parallel()
	f := newFetching(t)
	f.add(t, 1, 1, time.Second)
	other := &fetching{db: f.db, pool: f.pool, driver: queue.NewDriver(f.pool, f.db)}
	other.executor = other.driver.GetExecutor()
	lost := f.fetchAs(t, "frozen")
	f.exec(t, `UPDATE river_job SET state = 'available', attempt = attempt - 1`) // handed back
	taken := other.fetchAs(t, "next")
	if taken.ID != lost.ID || taken.Attempt != lost.Attempt {
		t.Fatalf("the next run is %d of job %d, want %d of %d", taken.Attempt, taken.ID,
			lost.Attempt, lost.ID)
	}
	if ended := f.complete(t, lost.ID); len(ended) != 0 {
		t.Errorf("a process that was frozen ended the next one's run: %+v", ended)
	}
	runs := true
	other.driver.Works = func(id int64) bool { return runs && id == taken.ID }
	if ended := other.complete(t, taken.ID); len(ended) != 0 {
		t.Errorf("the end of a former run ended the one under way: %+v", ended)
	}
	runs = false
	if ended := other.complete(t, taken.ID); len(ended) != 1 {
		t.Errorf("its own end ended %d jobs, want 1", len(ended))
	}
}

// fetchAs takes the only due job.
func (f *fetching) fetchAs(t *testing.T, client string) *rivertype.JobRow {
	t.Helper()
	found, err := f.executor.JobGetAvailable(t.Context(), &riverdriver.JobGetAvailableParams{
		ClientID: client, MaxAttemptedBy: 100, MaxToLock: 10, Queue: "hot",
	})
	if err != nil || len(found) != 1 {
		t.Fatalf("%s got %d jobs, want 1 (%v)", client, len(found), err)
	}
	return found[0]
}

// complete ends jobs as the library does and returns those that existed.
func (f *fetching) complete(t *testing.T, ids ...int64) []*rivertype.JobRow {
	t.Helper()
	params := &riverdriver.JobSetStateIfRunningManyParams{ID: ids}
	now := f.db.Now()
	for range ids {
		params.Attempt = append(params.Attempt, nil)
		params.ErrData = append(params.ErrData, nil)
		params.FinalizedAt = append(params.FinalizedAt, &now)
		params.MetadataDoMerge = append(params.MetadataDoMerge, false)
		params.MetadataUpdates = append(params.MetadataUpdates, nil)
		params.ScheduledAt = append(params.ScheduledAt, nil)
		params.State = append(params.State, rivertype.JobStateCompleted)
	}
	ended, err := f.executor.JobSetStateIfRunningMany(t.Context(), params)
	if err != nil {
		t.Fatal(err)
	}
	return ended
}

// TestListenerLeavesAServerThatLetsNobodyWrite: the queue's listener, when its connection is
// checked, gives up a connection to a server that turned out to refuse writes.
func TestListenerLeavesAServerThatLetsNobodyWrite(t *testing.T) {
	t.Parallel()
	f := newFetching(t)
	listener := f.driver.GetListener(&riverdriver.GetListenenerParams{})
	connect := func() {
		t.Helper()
		if err := listener.Connect(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := listener.Ping(t.Context()); err != nil {
			t.Errorf("a new connection is given up: %v", err)
		}
	}
	connect()
	if _, err := f.db.ExecContext(t.Context(),
		`DO $$ BEGIN RAISE EXCEPTION 'read-only' USING ERRCODE = '25006'; END $$`); err == nil {
		t.Fatal("the server lets write")
	}
	if listener.Ping(t.Context()) == nil {
		t.Error("it listens at the old server")
	}
	if err := listener.Close(t.Context()); err != nil {
		t.Error(err)
	}
	connect()
	if err := listener.Close(t.Context()); err != nil {
		t.Error(err)
	}
}
