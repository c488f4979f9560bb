package delivery_test

import (
	"net/http"
	"testing"
	"time"

	"drawbridge/internal/postgres/pgtest"
	"drawbridge/internal/webhook/delivery"
	"drawbridge/internal/webhook/webhooktest"
)

// TestDeliveringDoesNotReadTheDead: while a transaction is open, all jobs that ran since
// it began stay in the indexes. An attempt only reads those of its own job.
func TestDeliveringDoesNotReadTheDead(t *testing.T) {
	t.Parallel()
	const dead = 20_000
	h := webhooktest.New(t)
	endpoint := webhooktest.NewReceiver(t, nil)
	h.Subscribe(t, endpoint.URL, nil)
	pgtest.Hold(t, h.DB)
	// Few of many jobs are running, and the statistics say so, as on a service at work.
	h.Exec(t, `
		INSERT INTO river_job (state, queue, kind, args, max_attempts, scheduled_at, finalized_at)
		SELECT 'completed', 'email', 'any', '{}', 25, now(), now()
		  FROM generate_series(1, $1)`, dead)
	h.Exec(t, `ANALYZE river_job`)
	h.Exec(t, `
		INSERT INTO river_job (state, queue, kind, args, max_attempts, scheduled_at, attempted_at)
		SELECT 'running', 'webhook', 'any', '{}', 25, now(), now()
		  FROM generate_series(1, $1)`, dead)
	h.Exec(t, `DELETE FROM river_job WHERE queue = 'webhook'`)
	// A single connection, so that its counters show what was read.
	engine := h.DB.Engine()
	engine.SetMaxOpenConns(1)
	tables := []string{"river_job", "begun_attempts"}
	for range 3 {
		h.Publish(t)
		job := h.Job(t)
		read := pgtest.Blocks(t, h.DB, engine, tables, func() {
			if err := h.Deliveries.Deliver(t.Context(), job, webhooktest.First); err != nil {
				t.Fatal(err)
			}
		})
		if read > 100 {
			t.Errorf("an attempt read %d blocks beside %d dead jobs", read, dead)
		}
	}
	if state := h.Newest(t).State; state != "delivered" {
		t.Errorf("the delivery is %s", state)
	}
}

// TestFailingDoesNotReadTheDead: the indexes of open deliveries keep all that were open,
// while the planner expects few. An attempt that fails reads only its own rows and those
// of its event.
func TestFailingDoesNotReadTheDead(t *testing.T) {
	t.Parallel()
	const dead = 20_000
	h := webhooktest.New(t)
	endpoint := webhooktest.NewReceiver(t, func(w http.ResponseWriter, _ int) {
		w.WriteHeader(http.StatusInternalServerError)
	})
	h.Subscribe(t, endpoint.URL, nil)
	pgtest.Hold(t, h.DB)
	h.Publish(t)
	h.Exec(t, `
		INSERT INTO deliveries (delivery_uid, created_at, subscription_uid, event_uid, event_at, event,
		                        application_uid, status, state, next_attempt_at, queued)
		SELECT gen_random_uuid(), created_at, subscription_uid, gen_random_uuid(), event_at, event,
		       application_uid, status, state, next_attempt_at, queued
		  FROM deliveries
		 CROSS JOIN generate_series(1, $1)`, dead)
	h.Exec(t, `
		UPDATE deliveries
		   SET state = 'delivered', attempt_count = 1, next_attempt_at = NULL, queued = false,
		       finished_at = created_at, last_http_status = 200, last_duration_us = 1`)
	h.Exec(t, `DELETE FROM river_job`)
	h.Exec(t, `ANALYZE deliveries`)
	engine, table := h.DB.Engine(), "deliveries_y"+h.Clock.Now().Format("2006m01")
	engine.SetMaxOpenConns(1)
	for range 4 {
		h.Publish(t)
		h.Exec(t, `UPDATE deliveries SET attempt_count = 2 WHERE state = 'pending'`)
		last := h.Job(t)
		last.Number = 3
		read := pgtest.Blocks(t, h.DB, engine, []string{table}, func() {
			if err := h.Deliveries.Deliver(t.Context(), last, webhooktest.First); err != nil {
				t.Fatal(err)
			}
		})
		if read > 300 {
			t.Errorf("a last attempt read %d blocks beside %d that had waited", read, dead)
		}
	}
	if failed := h.Count(t, `SELECT count(*) FROM deliveries WHERE state = 'failed'`); failed != 4 {
		t.Errorf("%d deliveries have failed, want 4", failed)
	}
}

// TestDeliveringIsByKeyDespiteABacklog: the statistics of the queue are from when nothing
// waited, and those of the month's deliveries from when there were a few. An attempt
// reads only its own rows, however many others have come since.
func TestDeliveringIsByKeyDespiteABacklog(t *testing.T) {
	t.Parallel()
	const waiting = 20_000
	h := webhooktest.New(t)
	endpoint := webhooktest.NewReceiver(t, nil)
	h.Subscribe(t, endpoint.URL, nil)
	for range 60 {
		h.Publish(t)
	}
	h.Exec(t, `DELETE FROM river_job`)
	h.Exec(t, `VACUUM ANALYZE river_job, begun_attempts, deliveries`)
	engine := h.DB.Engine()
	engine.SetMaxOpenConns(1)
	deliver := func(job delivery.Args) {
		t.Helper()
		if err := h.Deliveries.Deliver(t.Context(), job, webhooktest.First); err != nil {
			t.Fatal(err)
		}
	}
	h.Publish(t)
	deliver(h.Job(t)) // its plans are cached from here on
	h.Publish(t)
	job := h.Job(t)
	h.Exec(t, `
		INSERT INTO deliveries (delivery_uid, created_at, subscription_uid, event_uid, event_at, event,
		                        application_uid, status, state, next_attempt_at, queued)
		SELECT gen_random_uuid(), created_at, subscription_uid, event_uid, event_at, event,
		       application_uid, status, state, next_attempt_at, queued
		  FROM deliveries
		 CROSS JOIN generate_series(1, $1)
		 WHERE delivery_uid = $2`, waiting, job.DeliveryUID)
	h.Exec(t, `
		INSERT INTO begun_attempts (delivery_uid, created_at, number, job_id, claimed_at, started_at)
		SELECT gen_random_uuid(), now(), 1, n, now(), now()
		  FROM generate_series(1, $1) AS n`, waiting)
	h.Exec(t, `
		INSERT INTO river_job (state, queue, kind, args, max_attempts, scheduled_at, attempted_at)
		SELECT 'running', 'webhook', 'any', '{}', 25, now(), now()
		  FROM generate_series(1, $1)`, waiting)
	tables := []string{
		"river_job", "begun_attempts", "deliveries_y" + h.Clock.Now().Format("2006m01"),
	}
	read := pgtest.Blocks(t, h.DB, engine, tables, func() { deliver(job) })
	if read > 200 {
		t.Errorf("an attempt read %d blocks beside %d that wait", read, waiting)
	}
	if state := h.Count(t, `SELECT count(*) FROM deliveries WHERE state = 'delivered'`); state != 2 {
		t.Errorf("%d deliveries arrived, want 2", state)
	}
}

// TestOrphansAreFoundInOneReadOfTheQueue: deliveries released after a long pause are
// overdue at once, all of them with a job, and the statistics of the queue are from when
// nothing waited. Each list is read once, not once for each row of the other.
func TestOrphansAreFoundInOneReadOfTheQueue(t *testing.T) {
	t.Parallel()
	const waiting = 5_000
	h := webhooktest.New(t)
	h.Subscribe(t, "https://hooks.example.com", nil)
	h.Publish(t)
	h.Exec(t, `DELETE FROM river_job`)
	h.Exec(t, `VACUUM ANALYZE river_job, deliveries`)
	h.Backlog(t, waiting, h.Clock.Now().Add(-24*time.Hour))
	h.Exec(t, `UPDATE deliveries SET queued = true`)
	h.Exec(t, `
		INSERT INTO river_job (state, queue, kind, args, max_attempts, scheduled_at)
		SELECT 'available', $1, $2, jsonb_build_object('delivery_uid', delivery_uid), 25, now()
		  FROM deliveries
		 ORDER BY next_attempt_at
		OFFSET 1`, delivery.Queue, delivery.Args{}.Kind())
	h.DB.SetMaxOpenConns(1)
	tables := []string{"river_job", "deliveries_y" + h.Clock.Now().Format("2006m01")}
	read := pgtest.Blocks(t, h.DB, h.DB.DB, tables, func() {
		if count, err := h.Deliveries.MarkOrphans(t.Context(), time.Minute); count != 1 || err != nil {
			t.Errorf("%d orphans, %v", count, err)
		}
	})
	if read > 4*waiting {
		t.Errorf("looking for orphans among %d deliveries read %d blocks", waiting, read)
	}
}
