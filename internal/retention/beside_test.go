package retention_test

import (
	"context"
	"database/sql"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/riverqueue/river"

	"drawbridge/internal/lending"
	"drawbridge/internal/postgres"
	"drawbridge/internal/postgres/pgtest"
	"drawbridge/internal/retention"
	"drawbridge/internal/webhook/delivery"
)

// patience is the longest that any change may wait because of retention. Its locks have a timeout
// of 50 ms each; the rest is for a busy machine.
const patience = 2 * time.Second

// publish does what a change of an application does: it updates the application, and inserts an
// event, its delivery and an attempt.
func (a *archive) publish(application uuid.UUID, nth int) error {
	at := today.Add(time.Duration(nth) * time.Microsecond)
	event, made := uuid.New(), uuid.New()
	return a.try(func(ctx context.Context, tx *postgres.Tx) error {
		for _, step := range []struct {
			query string
			args  []any
		}{
			{`UPDATE applications SET updated_at = $2 WHERE application_uid = $1`, []any{application, at}},
			{
				`
				INSERT INTO events (event_uid, occurred_at, kind, partner_uid, merchant_uid,
				                    application_uid, status, body, passed_over)
				VALUES ($1, $2, 'task.created', $3, $4, $5, 'Pending', '{}', '[]')`,
				[]any{event, at, a.partner, a.merchant, application},
			},
			{
				`
				INSERT INTO deliveries (delivery_uid, created_at, subscription_uid, event_uid, event_at,
				                        event, application_uid, status, state, queued, next_attempt_at)
				VALUES ($1, $2, $3, $4, $2, 'task.created', $5, 'Pending', 'pending', true, $2)`,
				[]any{made, at, a.subscription, event, application},
			},
			{`
				INSERT INTO attempts (delivery_uid, delivery_created_at, number, started_at, duration_us,
				                      request_headers, response_headers)
				VALUES ($1, $2, 1, $2, 5, '[]', '[]')`, []any{made, at}},
			{`
				UPDATE deliveries
				   SET state = 'delivered', next_attempt_at = NULL, queued = false
				 WHERE delivery_uid = $1
				   AND created_at = $2`, []any{made, at}},
		} {
			if _, err := tx.ExecContext(ctx, step.query, step.args...); err != nil {
				return err
			}
		}
		return nil
	})
}

// While months are exchanged, with and without rows that stay, changes go on: none fails, none is
// lost, and none waits for long.
func TestChangesGoOnWhileMonthsAreRemoved(t *testing.T) {
	t.Parallel()
	a := newArchive(t)
	held := a.application()
	a.hold(held)
	for back := 14; back < 20; back++ {
		a.record(held, today.AddDate(0, -back, 0), "delivered")
		a.record(a.application(), today.AddDate(0, -back, 0), "failed")
	}
	running, stop := context.WithCancel(t.Context())
	var published, slowest atomic.Int64
	var changes sync.WaitGroup
	for part := range 4 {
		application := a.application()
		changes.Go(func() {
			for nth := part; running.Err() == nil; nth += 4 {
				began := time.Now()
				if err := a.publish(application, nth); err != nil {
					t.Errorf("publishing: %v", err)
					return
				}
				published.Add(1)
				took := int64(time.Since(began))
				for last := slowest.Load(); took > last && !slowest.CompareAndSwap(last, took); {
					last = slowest.Load()
				}
			}
		})
	}
	months := 0
	for months < 11 {
		report, err := a.Run(running)
		if err != nil {
			t.Fatal(err)
		}
		months += len(report.Months)
	}
	stop()
	changes.Wait()
	if waited := time.Duration(slowest.Load()); waited > patience {
		t.Errorf("a change took %s while months were removed", waited)
	}
	t.Logf("%d changes beside %d months, the slowest %s", published.Load(), months,
		time.Duration(slowest.Load()))
	rows := a.count(`
		SELECT count(*)
		  FROM attempts a
		  JOIN deliveries d USING (delivery_uid)
		  JOIN events e USING (event_uid)
		 WHERE e.occurred_at >= $1`, today)
	if rows != int(published.Load()) {
		t.Errorf("%d changes are there, %d were made", rows, published.Load())
	}
	if kept := a.count(`SELECT count(*) FROM events WHERE application_uid = $1`, held); kept != 6 {
		t.Errorf("%d held events are left, want 6", kept)
	}
	if dangling := a.count(`
		SELECT (SELECT count(*)
		          FROM deliveries d
		         WHERE NOT EXISTS (SELECT 1 FROM events e WHERE e.event_uid = d.event_uid))
		     + (SELECT count(*)
		          FROM attempts a
		         WHERE NOT EXISTS (SELECT 1 FROM deliveries d WHERE d.delivery_uid = a.delivery_uid))`,
	); dangling != 0 {
		t.Errorf("%d rows refer to nothing", dangling)
	}
}

// A re-send that arrives while its month is exchanged still makes the failure good.
func TestFailuresAreMadeGoodBesideAnExchange(t *testing.T) {
	t.Parallel()
	a := newArchive(t)
	held := a.application()
	a.hold(held)
	old := today.AddDate(-2, 0, 0) // of the first month to be removed
	event := a.record(held, old, "failed")
	a.deliver(event, held, old, today, "retrying")
	a.record(a.application(), old, "failed") // makes the month worth removing
	reader := pgtest.Begin(t, a.DB, `SELECT count(*) FROM events`)
	var running sync.WaitGroup
	running.Go(func() {
		if _, err := a.Run(t.Context()); err != nil {
			t.Errorf("running: %v", err)
		}
	})
	pgtest.WaitForLock(t, a.DB) // the surviving rows have been copied
	a.exec(`
		UPDATE deliveries
		   SET state = 'delivered', next_attempt_at = NULL, finished_at = $2
		 WHERE event_uid = $1
		   AND state = 'retrying'`, event, today)
	if err := reader.Rollback(); err != nil {
		t.Fatal(err)
	}
	running.Wait()
	if left := a.count(`
		SELECT count(*)
		  FROM deliveries
		 WHERE event_uid = $1
		   AND state = 'failed'
		   AND made_good_by IS NOT NULL`, event); left != 1 {
		t.Errorf("%d failures are made good, want 1", left)
	}
}

// A long read, such as an export, delays retention, but nothing queued behind it.
func TestALongReadDelaysRetentionOnly(t *testing.T) {
	t.Parallel()
	a := newArchive(t)
	application := a.application()
	gone := a.record(application, today.AddDate(0, -16, 0), "failed")
	reader := pgtest.Begin(t, a.DB, `SELECT count(*) FROM events`)
	reports := make(chan retention.Report, 1)
	go func() {
		report, err := a.Run(t.Context())
		if err != nil {
			t.Errorf("running: %v", err)
		}
		reports <- report
	}()
	pgtest.WaitForLock(t, a.DB)
	for nth := range 20 {
		began := time.Now()
		if err := a.publish(application, nth); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took > patience {
			t.Errorf("a change took %s behind retention", took)
		}
	}
	if err := reader.Rollback(); err != nil {
		t.Fatal(err)
	}
	if report := <-reports; len(report.Months) == 0 {
		t.Errorf("report %+v", report)
	}
	for a.of(gone) != removed {
		a.run()
	}
}

// A hold that is placed while a month is being copied makes the month start over.
func TestALegalHoldIsNeverTooLate(t *testing.T) {
	t.Parallel()
	a := newArchive(t)
	application := a.application()
	event := a.record(application, today.AddDate(0, -16, 0), "failed")
	// The body has to be removed first; the hold comes between that and the month.
	a.exec(`UPDATE events SET body_removed_at = $2, body = '' WHERE event_uid = $1`, event, today)
	for _, matter := range []string{"events", "attempts"} {
		a.exec(`INSERT INTO retention_progress VALUES ($1, $2)`, matter, today.AddDate(0, -3, 0))
	}
	blocker := pgtest.Begin(t, a.DB, `
		INSERT INTO application_holds (application_uid, reason, placed_by, placed_at)
		VALUES ($1, 'case 7', 'legal@lender.example', $2)`, application, today)
	done := make(chan struct{})
	go func() {
		defer close(done)
		// Batches of bodies and months wait for a hold that is being placed.
		_, _ = a.Run(t.Context())
	}()
	pgtest.WaitForLock(t, a.DB)
	if err := blocker.Commit(); err != nil {
		t.Fatal(err)
	}
	<-done
	a.run()
	if got := a.of(event); got.row != 1 || got.deliveries != 1 {
		t.Errorf("what was held just in time: %+v", got)
	}
}

// noJobs is a queue for deliveries that are never made.
type noJobs struct{}

func (noJobs) InsertManyFastTx(
	context.Context, *sql.Tx, []river.InsertManyParams,
) (int, error) {
	return 0, nil
}

// A re-send finds the event's body, or is refused: also while the data of a released hold is
// removed.
func TestAResendBesideTheSweepOfAReleasedHold(t *testing.T) {
	t.Parallel()
	a := newArchive(t)
	application := a.application()
	a.hold(application)
	event := a.record(application, today.AddDate(0, 0, -100), "failed")
	a.run()
	a.want("held", event, wholeness{1, 1, 1, 1, 1})
	var failed uuid.UUID
	if err := a.DB.GetContext(t.Context(), &failed,
		`SELECT delivery_uid FROM deliveries WHERE event_uid = $1`, event); err != nil {
		t.Fatal(err)
	}
	a.do(func(ctx context.Context, tx *postgres.Tx) error {
		_, err := a.Release(ctx, tx, application, "legal@lender.example", "over")
		return err
	})
	deliveries := &delivery.Service{Log: delivery.Log{DB: a.DB}, Jobs: noJobs{}}
	resend := func(ctx context.Context, tx *postgres.Tx) error {
		_, err := deliveries.Resend(ctx, tx, []uuid.UUID{failed}, "ops", "once more")
		return err
	}
	ran := make(chan error, 1)
	a.do(func(ctx context.Context, tx *postgres.Tx) error {
		err := resend(ctx, tx)
		go func() {
			_, err := a.Run(context.Background())
			ran <- err
		}()
		pgtest.WaitForLock(t, a.DB)
		return err
	})
	if err := <-ran; err != nil { // it waits for a second at most
		t.Log(err)
		a.run()
	}
	a.want("re-sent meanwhile", event, wholeness{1, 1, 2, 1, 0})
	a.exec(`UPDATE deliveries SET state = 'delivered', next_attempt_at = NULL WHERE state = 'pending'`)
	a.run()
	a.want("once that has ended", event, wholeness{1, 0, 2, 1, 0})
	wantRefusal(t, a.try(resend), lending.CodeInvalidState)
}

// A delivery that retention removes while it is re-sent is not reported as sent.
func TestAResendOfADeliveryThatGoes(t *testing.T) {
	t.Parallel()
	a := newArchive(t)
	event := a.record(a.application(), today.AddDate(0, 0, -100), "failed")
	var failed uuid.UUID
	if err := a.DB.GetContext(t.Context(), &failed,
		`SELECT delivery_uid FROM deliveries WHERE event_uid = $1`, event); err != nil {
		t.Fatal(err)
	}
	deliveries := &delivery.Service{Log: delivery.Log{DB: a.DB}, Jobs: noJobs{}}
	resent := make(chan error, 1)
	a.do(func(ctx context.Context, tx *postgres.Tx) error {
		_, err := tx.ExecContext(ctx,
			`SELECT FROM events WHERE event_uid = $1 FOR NO KEY UPDATE`, event)
		if err != nil {
			return err
		}
		go func() {
			resent <- a.try(func(ctx context.Context, tx *postgres.Tx) error {
				_, err := deliveries.Resend(ctx, tx, []uuid.UUID{failed}, "ops", "")
				return err
			})
		}()
		pgtest.WaitForLock(t, a.DB)
		_, err = tx.ExecContext(ctx, `DELETE FROM deliveries WHERE delivery_uid = $1`, failed)
		return err
	})
	wantRefusal(t, <-resent, lending.CodeNotFound)
}

func TestOnlyOneRunAtATime(t *testing.T) {
	t.Parallel()
	a := newArchive(t)
	for back := range 3 {
		a.record(a.application(), today.AddDate(0, -14-back, 0), "failed")
	}
	var busy, worked atomic.Int64
	var runs sync.WaitGroup
	for range 4 {
		runs.Go(func() {
			report, err := a.Run(t.Context())
			switch {
			case err != nil:
				t.Error(err)
			case report.Busy:
				busy.Add(1)
			default:
				worked.Add(1)
			}
		})
	}
	runs.Wait()
	if worked.Load() == 0 || worked.Load()+busy.Load() != 4 {
		t.Errorf("%d worked, %d were busy", worked.Load(), busy.Load())
	}
	if rows := a.count(`SELECT count(*) FROM events`); rows != 0 {
		t.Errorf("%d events are left", rows)
	}
}
