package subscription_test

import (
	"context"
	"strings"
	"testing"

	"drawbridge/internal/lending"
	"drawbridge/internal/postgres"
	"drawbridge/internal/secret"
	"drawbridge/internal/webhook/delivery"
	"drawbridge/internal/webhook/sender"
	"drawbridge/internal/webhook/subscription"
	"drawbridge/internal/webhook/webhooktest"
)

// Without its key, a subscription is still found, paused and deleted, is not changed by
// accident, and is repaired by setting headers and secret again.
func TestSubscriptionOutlivesItsKey(t *testing.T) {
	t.Parallel()
	h := webhooktest.New(t)
	endpoint := webhooktest.NewReceiver(t, webhooktest.Answering(200))
	made, _ := h.Subscribe(t, endpoint.URL, func(s *subscription.Settings) {
		s.Headers = []sender.Header{{Name: "x-key", Value: "v"}}
	})
	lost := h.Subscriptions.Keys.Current()
	h.Subscriptions.Keys = webhooktest.OtherKeys(t)
	found, err := h.Subscriptions.Get(t.Context(), made.UID)
	if err != nil {
		t.Fatal(err)
	}
	if found.MissingKey != lost || !found.HeadersUnknown || found.Headers != nil {
		t.Errorf("found %+v, want one that misses the key %s", found, lost)
	}
	url := endpoint.URL + "/other"
	err = h.Try(func(ctx context.Context, tx *postgres.Tx) error {
		_, _, err := h.Subscriptions.Amend(ctx, tx, made.UID, subscription.Patch{URL: &url}, "operator")
		return err
	})
	if lending.ErrorCode(err) != lending.CodeInvalidState || !strings.Contains(err.Error(), lost) {
		t.Errorf("a change beside unknown headers: %v, want INVALID_STATE with the key", err)
	}
	h.ChangeState(t, made.UID, h.Subscriptions.Pause)
	h.ChangeState(t, made.UID, h.Subscriptions.Resume)
	none, value := []sender.Header{}, secret.New(strings.Repeat("new", 20))
	healed, _ := h.Amend(t, made.UID, subscription.Patch{Headers: &none, Secret: &value})
	if healed.MissingKey != "" || healed.HeadersUnknown {
		t.Errorf("after new headers and a new secret: %+v", healed)
	}
	h.Publish(t)
	if err := h.Deliveries.Deliver(t.Context(), h.Job(t), webhooktest.First); err != nil {
		t.Errorf("delivering with what was set again: %v", err)
	}
	if state := h.Newest(t).State; state != delivery.StateDelivered {
		t.Errorf("the delivery is %s", state)
	}
}

// Deleting it needs no key at all.
func TestSubscriptionIsDeletedWithoutItsKey(t *testing.T) {
	t.Parallel()
	h := webhooktest.New(t)
	made, _ := h.Subscribe(t, "https://hooks.example.com", func(s *subscription.Settings) {
		s.Headers = []sender.Header{{Name: "x-key", Value: "v"}}
	})
	h.Subscriptions.Keys = webhooktest.OtherKeys(t)
	h.Do(t, func(ctx context.Context, tx *postgres.Tx) error {
		deleted, err := h.Subscriptions.Delete(ctx, tx, made.UID, "operator")
		if err == nil && deleted.State != subscription.StateDeleted {
			t.Errorf("it is %s", deleted.State)
		}
		return err
	})
}
