package delivery_test

import (
	"context"
	"strings"
	"testing"

	"github.com/google/uuid"

	"drawbridge/internal/lending"
	"drawbridge/internal/postgres"
	"drawbridge/internal/webhook/delivery"
	"drawbridge/internal/webhook/webhooktest"
)

// An event whose body retention removed cannot be re-sent, and the refusal says so.
func TestARemovedBodyIsNotSentAgain(t *testing.T) {
	t.Parallel()
	h := webhooktest.New(t)
	endpoint := webhooktest.NewReceiver(t, nil)
	h.Subscribe(t, endpoint.URL, nil)
	event := h.Publish(t)
	h.Work(t)
	found := h.List(t)[0].UID
	h.Exec(t, `UPDATE events SET body = '', body_removed_at = $2 WHERE event_uid = $1`,
		event.UID, h.Clock.Now())
	if detail := h.Detail(t, found); len(detail.Body) != 0 || detail.BodyRemovedAt == nil {
		t.Errorf("body %q, removed at %v", detail.Body, detail.BodyRemovedAt)
	}
	resend := func(ctx context.Context, tx *postgres.Tx) error {
		_, err := h.Deliveries.Resend(ctx, tx, []uuid.UUID{found}, "support", "")
		return err
	}
	err := h.Try(resend)
	webhooktest.WantRefusal(t, err, lending.CodeInvalidState)
	if !strings.Contains(err.Error(), "removed on "+h.Clock.Now().Format("2006-01-02")) {
		t.Errorf("the refusal does not say why: %v", err)
	}
	err = h.Try(func(ctx context.Context, tx *postgres.Tx) error {
		_, err := h.Deliveries.ResendMatching(ctx, tx, delivery.Filter{
			ApplicationUID: h.Application,
		}, "support", "")
		return err
	})
	webhooktest.WantRefusal(t, err, lending.CodeInvalidState)
}

// If the body is gone although its delivery is open, the delivery is cancelled: nothing
// else is sent as that event.
func TestADeliveryWithoutABodyIsCancelled(t *testing.T) {
	t.Parallel()
	h := webhooktest.New(t)
	endpoint := webhooktest.NewReceiver(t, nil)
	h.Subscribe(t, endpoint.URL, nil)
	event := h.Publish(t)
	h.Exec(t, `UPDATE events SET body = '', body_removed_at = $2 WHERE event_uid = $1`,
		event.UID, h.Clock.Now())
	h.Work(t)
	state, sent := h.Newest(t).State, len(endpoint.Requests())
	if state != delivery.StateCancelled || sent != 0 {
		t.Errorf("state %s after %d requests", state, sent)
	}
}
