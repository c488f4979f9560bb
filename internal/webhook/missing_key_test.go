package webhook_test

import (
	"context"
	"strings"
	"testing"

	"drawbridge/internal/lending"
	"drawbridge/internal/postgres"
	"drawbridge/internal/secret"
	"drawbridge/internal/webhook"
)

// Where a key is lost, a subscription is still found, paused and deleted, is not
// changed by accident, and is healed by new headers and a new secret.
func TestSubscriptionOutlivesItsKey(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	endpoint := newReceiver(t, answering(200))
	made, _ := h.subscribe(t, endpoint.URL, func(s *webhook.Settings) {
		s.Headers = []webhook.Header{{Name: "x-key", Value: "v"}}
	})
	lost := h.Keys.Current()
	h.Keys = otherKeys(t)
	found, err := h.Subscription(t.Context(), made.UID)
	if err != nil {
		t.Fatal(err)
	}
	if found.MissingKey != lost || !found.HeadersUnknown || found.Headers != nil {
		t.Errorf("found %+v, want one that misses the key %s", found, lost)
	}
	url := endpoint.URL + "/other"
	err = h.try(func(ctx context.Context, tx *postgres.Tx) error {
		_, _, err := h.Amend(ctx, tx, made.UID, webhook.Patch{URL: &url}, "operator")
		return err
	})
	if lending.ErrorCode(err) != lending.CodeInvalidState || !strings.Contains(err.Error(), lost) {
		t.Errorf("a change beside unknown headers: %v, want INVALID_STATE with the key", err)
	}
	h.changeState(t, made.UID, h.Pause)
	h.changeState(t, made.UID, h.Resume)
	none, value := []webhook.Header{}, secret.New(strings.Repeat("new", 20))
	healed, _ := h.amend(t, made.UID, webhook.Patch{Headers: &none, Secret: &value})
	if healed.MissingKey != "" || healed.HeadersUnknown {
		t.Errorf("after new headers and a new secret: %+v", healed)
	}
	h.publish(t)
	if err := h.Deliver(t.Context(), h.job(t), first); err != nil {
		t.Errorf("delivering with what was set anew: %v", err)
	}
	if state := h.newest(t).State; state != webhook.DeliveryDelivered {
		t.Errorf("the delivery is %s", state)
	}
}

// Its deletion needs no key at all.
func TestSubscriptionIsDeletedWithoutItsKey(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	made, _ := h.subscribe(t, "https://hooks.example.com", func(s *webhook.Settings) {
		s.Headers = []webhook.Header{{Name: "x-key", Value: "v"}}
	})
	h.Keys = otherKeys(t)
	h.do(t, func(ctx context.Context, tx *postgres.Tx) error {
		deleted, err := h.Delete(ctx, tx, made.UID, "operator")
		if err == nil && deleted.State != webhook.StateDeleted {
			t.Errorf("it is %s", deleted.State)
		}
		return err
	})
}
