package jobs_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/uuid"

	"drawbridge/internal/app/apptest"
	"drawbridge/internal/postgres"
	"drawbridge/internal/postgres/pgtest"
	"drawbridge/internal/waittest"
	"drawbridge/jobs"
)

// TestDueDeliveriesDoNotWaitForReclaiming: while the scan for deliveries without a job waits
// for one of them, the others are enqueued as they fall due.
func TestDueDeliveriesDoNotWaitForReclaiming(t *testing.T) {
	t.Parallel()
	h := apptest.New(t)
	uid := h.Subscribe(t, nil).UID
	add := func(due time.Time, queued bool) uuid.UUID {
		t.Helper()
		made := postgres.NewUID(due)
		h.Exec(t, `
			INSERT INTO deliveries (delivery_uid, created_at, subscription_uid, event_uid, event_at,
			                        event, status, test, state, next_attempt_at, queued)
			VALUES ($1, $2, $3, $1, $2, 'application.status.update', 'Approved', false, 'pending',
			        $2, $4)`, made, due, uid, queued)
		return made
	}
	jobOf := func(made uuid.UUID) func() bool {
		return func() bool {
			return h.Count(t, `
				SELECT count(*) FROM river_job WHERE args ->> 'delivery_uid' = $1::text`, made) == 1
		}
	}
	var err error
	if h.MailSender, err = h.NewMailSender(); err != nil {
		t.Fatal(err)
	}
	orphan := add(h.DB.Now().Add(-time.Hour), true)
	running, stop := context.WithCancel(t.Context())
	ended := make(chan struct{}, 1)
	h.Do(t, func(ctx context.Context, tx *postgres.Tx) error {
		_, err := tx.ExecContext(ctx,
			`SELECT FROM deliveries WHERE delivery_uid = $1 FOR UPDATE`, orphan)
		go func() {
			jobs.EnqueueDue(running, h.Webhooks, h.MailSender)
			ended <- struct{}{}
		}()
		pgtest.WaitForLock(t, h.DB)
		waittest.Until(t, "the other one is enqueued", jobOf(add(h.DB.Now(), false)))
		return err
	})
	waittest.Until(t, "the one without a job gets one", jobOf(orphan))
	stop()
	waittest.Receive(t, "the end of the loop", ended)
}
