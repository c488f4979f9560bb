package delivery_test

import (
	"testing"

	"drawbridge/internal/postgres/pgtest"
	"drawbridge/internal/webhook/webhooktest"
)

// TestDeliveringDoesNotReadTheDead: while a transaction is open, all jobs that ran since it began
// stay in the indexes. An attempt reads those of its own job.
func TestDeliveringDoesNotReadTheDead(t *testing.T) {
	t.Parallel()
	const dead = 20_000
	h := webhooktest.New(t)
	endpoint := webhooktest.NewReceiver(t, nil)
	h.Subscribe(t, endpoint.URL, nil)
	pgtest.Hold(t, h.DB)
	// Few jobs of many run, as the planner knows it of a service at work.
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
	// One connection, of which it is known what it read.
	engine := h.DB.Engine()
	engine.SetMaxOpenConns(1)
	blocks := func() int { return pgtest.Blocks(t, engine, "river_job", "begun_attempts") }
	for range 3 {
		h.Publish(t)
		job := h.Job(t)
		before := blocks()
		if err := h.Deliveries.Deliver(t.Context(), job, webhooktest.First); err != nil {
			t.Fatal(err)
		}
		if read := blocks() - before; read > 100 {
			t.Errorf("an attempt read %d blocks beside %d dead jobs", read, dead)
		}
	}
	if state := h.Newest(t).State; state != "delivered" {
		t.Errorf("the delivery is %s", state)
	}
}
