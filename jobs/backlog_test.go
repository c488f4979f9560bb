package jobs_test

import (
	"context"
	"testing"

	"drawbridge/internal/app/apptest"
	"drawbridge/internal/postgres"
	"drawbridge/internal/waittest"
)

// TestALargeBacklogIsCancelledWithItsSubscription deletes a subscription with more open
// deliveries than one transaction cancels; a working process cancels the rest.
func TestALargeBacklogIsCancelledWithItsSubscription(t *testing.T) {
	t.Parallel()
	h := apptest.New(t)
	uid := h.Subscribe(t, nil).UID
	h.Exec(t, `
		INSERT INTO deliveries (delivery_uid, created_at, subscription_uid, event_uid, event_at, event,
		                        status, test, state, next_attempt_at, queued, parked)
		SELECT drawbridge_uid($1), $1, $2, drawbridge_uid($1), $1, 'application.status.update',
		       'Approved', false, 'pending', $1, false, true
		  FROM generate_series(1, 2500)`, h.DB.Now(), uid)
	const waiting = `SELECT count(*) FROM deliveries WHERE state = 'pending'`
	h.Do(t, func(ctx context.Context, tx *postgres.Tx) error {
		_, err := h.Webhooks.Subscriptions.Delete(ctx, tx, uid, "operator")
		return err
	})
	if left := h.Count(t, waiting); left != 1500 {
		t.Errorf("%d deliveries wait after the change itself, want 1500", left)
	}
	var err error
	if h.MailSender, err = h.NewMailSender(); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- h.Services.Work(ctx, func() {}) }()
	waittest.Until(t, "all is cancelled", func() bool { return h.Count(t, waiting) == 0 })
	stop()
	if err := waittest.Receive(t, "the end of the worker", ended); err != nil {
		t.Error(err)
	}
}
