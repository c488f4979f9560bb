package webhook_test

import (
	"context"
	"strings"
	"testing"

	"github.com/google/uuid"

	"drawbridge/internal/lending"
	"drawbridge/internal/postgres"
	"drawbridge/internal/webhook"
)

// A body that retention removed cannot be sent again, and the refusal says so.
func TestARemovedBodyIsNotSentAgain(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	endpoint := newReceiver(t, nil)
	h.subscribe(t, endpoint.URL, nil)
	event := h.publish(t)
	h.work(t)
	delivery := h.list(t)[0].UID
	h.exec(t, `UPDATE events SET body = '', body_removed_at = $2 WHERE event_uid = $1`,
		event.UID, h.clock.now())
	if detail := h.detail(t, delivery); len(detail.Body) != 0 || detail.BodyRemovedAt == nil {
		t.Errorf("body %q, removed at %v", detail.Body, detail.BodyRemovedAt)
	}
	resend := func(ctx context.Context, tx *postgres.Tx) error {
		_, err := h.Resend(ctx, tx, []uuid.UUID{delivery}, "support", "")
		return err
	}
	err := h.try(resend)
	wantRefusal(t, err, lending.CodeInvalidState)
	if !strings.Contains(err.Error(), "removed on "+h.clock.now().Format("2006-01-02")) {
		t.Errorf("the refusal does not say why: %v", err)
	}
	err = h.try(func(ctx context.Context, tx *postgres.Tx) error {
		_, err := h.ResendMatching(ctx, tx, webhook.DeliveryFilter{
			ApplicationUID: h.application,
		}, "support", "")
		return err
	})
	wantRefusal(t, err, lending.CodeInvalidState)
}

// A body that is gone although its delivery is open ends the delivery: nothing
// else goes out under the event's name.
func TestADeliveryWithoutABodyIsCancelled(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	endpoint := newReceiver(t, nil)
	h.subscribe(t, endpoint.URL, nil)
	event := h.publish(t)
	h.exec(t, `UPDATE events SET body = '', body_removed_at = $2 WHERE event_uid = $1`,
		event.UID, h.clock.now())
	h.work(t)
	state, sent := h.newest(t).State, len(endpoint.requests())
	if state != webhook.DeliveryCancelled || sent != 0 {
		t.Errorf("state %s after %d requests", state, sent)
	}
}
